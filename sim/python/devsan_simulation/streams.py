"""torch._C._CudaStreamBase and _CudaEventBase, over torch's accelerator-neutral Stream and Event."""

FIRST_HIGH_PRIORITY_STREAM = 33  # as sim/device_guard.cpp gives out stream ids
PRIORITIES = (0, -5)


def names(extension, core):
    class _CudaStreamBase(extension.Stream):
        def __new__(cls, priority=0, stream_id=0, device_index=0, device_type=0, stream_ptr=0):
            if stream_ptr:
                raise core.not_covered(
                    "torch.cuda.ExternalStream: there is no CUDA driver that a foreign stream could belong to"
                )
            if stream_id or device_index or device_type:
                return super().__new__(cls, stream_id=stream_id, device_index=device_index, device_type=device_type)
            index = extension._accelerator_hooks_get_current_device()
            return super().__new__(cls, device=extension.device("cuda", index), priority=priority)

        @property
        def cuda_stream(self):
            return self.native_handle

        @property
        def priority(self):
            return -1 if self.stream_id >= FIRST_HIGH_PRIORITY_STREAM else 0

        @staticmethod
        def priority_range():
            return PRIORITIES

    class _CudaEventBase(extension.Event):
        """elapsed_time takes an exact torch.Event only, so there is one inside that does the work."""

        def __new__(cls, enable_timing=False, blocking=False, interprocess=False, external=False):
            device = extension.device("cuda")
            event = super().__new__(cls, device=device)
            event._event = extension.Event(
                device=device, enable_timing=enable_timing, blocking=blocking, interprocess=interprocess
            )
            return event

        @property
        def device(self):
            return self._event.device

        @property
        def cuda_event(self):
            return self._event.event_id

        event_id = cuda_event

        def record(self, stream):
            self._event.record(stream)

        def wait(self, stream):
            self._event.wait(stream)

        def query(self):
            return self._event.query()

        def synchronize(self):
            self._event.synchronize()

        def elapsed_time(self, end_event):
            return self._event.elapsed_time(end_event._event)

        def ipc_handle(self):
            raise core.not_covered("torch.cuda.Event.ipc_handle")

        @classmethod
        def from_ipc_handle(cls, device, handle):
            raise core.not_covered("torch.cuda.Event.from_ipc_handle")

    return {"_CudaStreamBase": _CudaStreamBase, "_CudaEventBase": _CudaEventBase}
