"""torch._C._cuda_*: devices, memory statistics, current streams. Most of it is the accelerator-neutral part of
torch._C, which asks the simulation through c10's interfaces."""

import os
import time

from . import native

SIMULATED_CAPABILITY = (9, 0)
CLOCK_RATE_KHZ = 1_980_000
ARCHITECTURES = "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120"
CUDA_VERSION_NUMBER = 13000
NCCL_VERSION = (2, 27, 5)
CUDA_DEVICE_TYPE = 1  # c10::DeviceType::CUDA


class DeviceProperties:
    """What cudaGetDeviceProperties says of an H100, with the memory that was asked for."""

    name = "NVIDIA H100 80GB HBM3 (simulated by devsan)"
    major, minor = SIMULATED_CAPABILITY
    is_multi_gpu_board = 0
    is_integrated = 0
    multi_processor_count = 132
    max_threads_per_multi_processor = 2048
    max_threads_per_block = 1024
    warp_size = 32
    regs_per_multiprocessor = 65536
    shared_memory_per_block = 49152
    shared_memory_per_block_optin = 232448
    shared_memory_per_multiprocessor = 233472
    L2_cache_size = 52428800
    clock_rate = CLOCK_RATE_KHZ
    memory_clock_rate = 2_619_000
    memory_bus_width = 5120
    gcnArchName = name
    pci_domain_id = 0
    pci_device_id = 0

    def __init__(self, index, total_memory):
        self.total_memory = total_memory
        self.pci_bus_id = index
        self.uuid = f"5d5d5d5d-0000-0000-0000-{index:012x}"

    def __repr__(self):
        return (
            f"_CudaDeviceProperties(name='{self.name}', major={self.major}, minor={self.minor}, "
            f"total_memory={self.total_memory // (1024 * 1024)}MB, "
            f"multi_processor_count={self.multi_processor_count}, uuid={self.uuid}, "
            f"L2_cache_size={self.L2_cache_size // (1024 * 1024)}MB)"
        )


class Runtime:
    def __init__(self, extension, core):
        self.extension = extension
        self.core = core
        self.initialized = False
        self.in_bad_fork = False

    def init(self):
        """As the CUDA build: an initialised process must not use CUDA in its fork children."""
        import torch.cuda

        extension = self.extension
        if extension._accelerator_hooks_device_count() == 0:
            raise RuntimeError("No CUDA GPUs are available")
        if not self.initialized:
            os.register_at_fork(after_in_child=self.enter_fork_child)
            native.poison_fork(extension, CUDA_DEVICE_TYPE)
        self.initialized = True
        count = extension._accelerator_hooks_device_count()
        torch.cuda.default_generators = tuple(self.core.default_generator(i) for i in range(count))
        torch.cuda._get_device_properties = self.device_properties

    def enter_fork_child(self):
        self.in_bad_fork = True

    def device_properties(self, index):
        return DeviceProperties(index, self.extension._accelerator_getMemoryInfo(index)[1])

    def set_device(self, index):
        self.extension._accelerator_hooks_set_current_device(require_int(index, "setDevice"))

    def exchange_device(self, index):
        return self.extension._accelerator_hooks_exchange_device(require_int(index, "exchangeDevice"))

    def maybe_exchange_device(self, index):
        """A function of its own: torch.compile tells the two apart."""
        return self.exchange_device(index)

    def current_stream(self, index):
        return self.extension._accelerator_getStream(require_int(index, "getCurrentStream"))

    def set_stream(self, stream_id, device_index, device_type):
        stream = self.extension.Stream(stream_id=stream_id, device_index=device_index, device_type=device_type)
        self.extension._accelerator_setStream(stream)

    def synchronize(self):
        self.extension._accelerator_synchronizeDevice(self.extension._accelerator_hooks_get_current_device())

    def sleep(self, cycles):
        time.sleep(cycles / (CLOCK_RATE_KHZ * 1000))

    def set_sync_debug_mode(self, mode):
        if mode not in (0, "default"):
            raise self.core.not_covered(
                "torch.cuda.set_sync_debug_mode: every operator completes before it returns"
            )


def require_int(value, function):
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise RuntimeError(f"invalid argument to {function}")
    return value.__index__()


def stream_data(stream):
    return stream.stream_id, stream.device_index, stream.device_type


def names(extension, core):
    runtime = Runtime(extension, core)
    return {
        "_CudaDeviceProperties": DeviceProperties,
        "_cuda_init": runtime.init,
        "_cuda_isInBadFork": lambda: runtime.in_bad_fork,
        "_cuda_hasPrimaryContext": lambda index: runtime.initialized,
        "_cuda_getDeviceCount": extension._accelerator_hooks_device_count,
        "_cuda_getDevice": extension._accelerator_hooks_get_current_device,
        "_cuda_setDevice": runtime.set_device,
        "_cuda_exchangeDevice": runtime.exchange_device,
        "_cuda_maybeExchangeDevice": runtime.maybe_exchange_device,
        "_cuda_canDeviceAccessPeer": lambda device, peer: device != peer,
        "_cuda_getArchFlags": lambda: ARCHITECTURES,
        "_cuda_getCompiledVersion": getattr(extension, "_cuda_getCompiledVersion", lambda: CUDA_VERSION_NUMBER),
        "_cuda_synchronize": runtime.synchronize,
        "_cuda_sleep": runtime.sleep,
        "_cuda_ipc_collect": lambda: None,
        "_host_emptyCache": lambda: None,
        "_cuda_clearCublasWorkspaces": lambda: None,
        "_cuda_get_sync_debug_mode": lambda: 0,
        "_cuda_set_sync_debug_mode": runtime.set_sync_debug_mode,
        "_cuda_getCurrentStream": lambda index: stream_data(runtime.current_stream(index)),
        "_cuda_getDefaultStream": lambda index: (0, require_int(index, "getDefaultStream"), CUDA_DEVICE_TYPE),
        "_cuda_getCurrentRawStream": lambda index: runtime.current_stream(index).native_handle,
        "_cuda_setStream": runtime.set_stream,
        "_cuda_emptyCache": extension._accelerator_emptyCache,
        "_cuda_memoryStats": extension._accelerator_getDeviceStats,
        "_cuda_resetAccumulatedMemoryStats": extension._accelerator_resetAccumulatedStats,
        "_cuda_resetPeakMemoryStats": extension._accelerator_resetPeakStats,
        "_cuda_getAllocatorBackend": lambda: "native",
        "_cuda_isHistoryEnabled": lambda: False,
        "_cuda_memoryMetadataSupported": lambda: False,
        "_nccl_version": lambda: NCCL_VERSION[0] << 32 | NCCL_VERSION[1] << 16 | NCCL_VERSION[2],
        "_nccl_version_suffix": lambda: b"",
    }
