"""The names of a CUDA build that the simulation does not cover: calling one raises an error that names it."""


class Uncovered:
    core = None  # the simulation's library, which each call is reported to

    def __init__(self, name):
        self.name = name

    def __call__(self, *args, **kwargs):
        raise self.core.not_covered(self.name)

    def __repr__(self):
        return f"<{self.name}, not covered by devsan's simulation>"


class Jiterator(Uncovered):
    """Operands that are not all on one device are refused before anything is compiled."""

    def __call__(self, code, kernel_name, return_by_ref, num_outputs, tensors, kwargs):
        devices = [tensor.device for tensor in tensors]
        common = next((device for device in devices if device.type == "cuda"), None)
        if devices and common is None:
            raise RuntimeError(f"CUDAGuardImpl initialized with non-CUDA DeviceType: {devices[0].type}")
        for device in devices:
            if device != common:
                raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices, "
                                   f"{common} and {device}!")
        super().__call__()


# Every further name that torch's Python files use from a CUDA build's extension module.
FUNCTIONS = """
_cuda_allocationTraceback _cuda_annotateMemory _cuda_attach_out_of_memory_observer
_cuda_beginAllocateCurrentStreamToPool _cuda_beginAllocateCurrentThreadToPool _cuda_beginAllocateToPool
_cuda_changeCurrentAllocator _cuda_checkPoolLiveAllocations _cuda_cudaCachingAllocator_enable
_cuda_cudaCachingAllocator_is_enabled _cuda_cudaCachingAllocator_raw_alloc _cuda_cudaCachingAllocator_raw_delete
_cuda_cudaHostAllocator _cuda_customAllocator _cuda_endAllocateToPool _cuda_getAllocator _cuda_getCheckpointState
_cuda_getCublasLtWorkspaceSize _cuda_getCublasWorkspaceSize _cuda_getCurrentBlasHandle _cuda_getCurrentSolverHandle
_cuda_getMemoryFraction _cuda_getMemoryMetadata _cuda_getStreamFromExternal _cuda_get_conv_benchmark_empty_cache
_cuda_get_cudnn_benchmark_limit _cuda_hostMemoryStats _cuda_memorySnapshot
_cuda_record_memory_history _cuda_record_memory_history_legacy _cuda_record_untuned_enable
_cuda_record_untuned_is_enabled _cuda_releasePool _cuda_resetAccumulatedHostMemoryStats _cuda_resetCublasLtWorkspaceSize
_cuda_resetCublasWorkspaceSize _cuda_resetPeakHostMemoryStats _cuda_setCheckpointPoolState
_cuda_setCublasLtWorkspaceSize _cuda_setCublasWorkspaceSize _cuda_setMemoryFraction _cuda_setMemoryMetadata
_cuda_set_cudnn_benchmark_limit _cuda_tunableop_enable _cuda_tunableop_get_cublaslt_requested_algo_count
_cuda_tunableop_get_filename _cuda_tunableop_get_max_tuning_duration _cuda_tunableop_get_max_tuning_iterations
_cuda_tunableop_get_results _cuda_tunableop_get_rotating_buffer_size _cuda_tunableop_get_validators
_cuda_tunableop_is_enabled _cuda_tunableop_read_file _cuda_tunableop_set_cublaslt_requested_algo_count
_cuda_tunableop_set_filename _cuda_tunableop_set_max_tuning_duration _cuda_tunableop_set_max_tuning_iterations
_cuda_tunableop_set_numerical_check_tolerances _cuda_tunableop_set_rotating_buffer_size _cuda_tunableop_tuning_enable
_cuda_tunableop_tuning_is_enabled _nccl_init_rank _nccl_unique_id
""".split()


JITERATOR = "_cuda_jiterator_compile_and_launch_kernel"

# Classes that torch's Python files derive theirs from or import.
TYPES = {
    "_MemPool": "torch.cuda.MemPool",
    "_cuda_CUDAAllocator_AllocatorState": "torch._C._cuda_CUDAAllocator_AllocatorState",
}


def uncovered_type(name, public_name):
    return type(name, (), {"__new__": lambda cls, *args, **kwargs: Uncovered(public_name)()})


def add_names(extension, core):
    Uncovered.core = core
    for name, public_name in TYPES.items():
        if not hasattr(extension, name):
            setattr(extension, name, uncovered_type(name, public_name))
    for name in FUNCTIONS:
        if not hasattr(extension, name):
            setattr(extension, name, Uncovered(f"torch._C.{name}"))
    if not hasattr(extension, JITERATOR):
        setattr(extension, JITERATOR, Jiterator(f"torch._C.{JITERATOR}"))
