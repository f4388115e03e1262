"""ProcessGroupNCCL of torch._C._distributed_c10d: the collectives of gloo, on the CPU's view of a simulated device's
memory. sim/collectives.cpp does the work."""

import datetime
import itertools

NCCL_TIMEOUT = datetime.timedelta(minutes=10)


def extend(c10d, core):
    if getattr(getattr(c10d, "ProcessGroupNCCL", None), "__module__", None) == __name__:
        return  # a build with CUDA has one of its own, which this one replaces
    group_numbers = itertools.count()

    class NcclOptions(c10d.Backend.Options):
        def __init__(self, is_high_priority_stream=False):
            super().__init__("nccl", NCCL_TIMEOUT)
            self.is_high_priority_stream = is_high_priority_stream

    class NcclType(type):
        """A backend is an object of c10d's own class, told by its name."""

        def __instancecheck__(cls, instance):
            return isinstance(instance, c10d.Backend) and instance.name() == "nccl"

    class ProcessGroupNCCL(metaclass=NcclType):
        Options = NcclOptions

        def __new__(cls, store, rank, size, options=None):
            timeout = getattr(options, "_timeout", NCCL_TIMEOUT)
            if isinstance(options, datetime.timedelta):
                timeout = options
            return make_backend(c10d, core, f"devsan_simulation/{next(group_numbers)}", store, rank, size, timeout)

    c10d.ProcessGroupNCCL = ProcessGroupNCCL
    c10d._DEFAULT_PG_NCCL_TIMEOUT = NCCL_TIMEOUT
    # The Python bindings of a real ProcessGroupNCCL have these besides; there is nothing to group or number here.
    c10d.Backend.uid = property(lambda backend: id(backend))
    c10d.Backend._group_start = c10d.Backend._group_end = lambda backend: None


def make_backend(c10d, core, name, store, rank, size, timeout):
    """c10d finds a process group by its name from C++ too: that is how the backend of one side reaches the other."""
    import torch

    gloo = c10d.ProcessGroupGloo(store, rank, size, timeout=timeout)
    group = c10d.ProcessGroup(store, rank, size)
    group._register_backend(torch.device("cpu"), c10d.ProcessGroup.BackendType.GLOO, gloo)
    c10d._register_process_group(name, group)
    try:
        core.wrap_backend(name)
        return group._get_backend(torch.device("cuda"))
    finally:
        c10d._unregister_process_group(name)
