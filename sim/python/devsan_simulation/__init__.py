"""Gives torch's extension module the names that a build with CUDA has, so that the unmodified torch.cuda runs on
simulated devices. Runs right after torch._C was made, before torch's own Python code goes on with it."""

import atexit

from . import backward_threads, comm, cuda_build, cudart, distributed, graphs, kernel_overrides, native, nvtx, runtime
from . import storage, streams, uncovered

CUDA_VERSION = "13.0"

# After an operator failed on the device, lets the next ones run; for what compares operators one after another.
restore_context = None


def extend(extension, library):
    """`extension` is torch._C, `library` the path of libdevsan_sim.so."""
    global restore_context
    core = native.Library(library, extension)
    restore_context = core.restore_context
    covered = {}
    for part in (runtime, streams, graphs, cudart, nvtx, comm):
        covered.update(part.names(extension, core))
    cuda_build.hide(extension, covered)
    for name, value in covered.items():
        setattr(extension, name, value)
    extension._has_cuda = True
    uncovered.add_names(extension, core)
    kernel_overrides.keep_out()
    atexit.register(backward_threads.wait_until_idle)
    run_after(extension, "_initExtension", lambda: finish_import(core))
    run_after(extension, "_c10d_init", lambda: distributed.extend(extension._distributed_c10d, core))


def run_after(extension, name, action):
    """Calls `action` at the end of every call of the extension's function `name`."""
    original = getattr(extension, name, None)
    if original is None:
        return

    def wrapper(*args, **kwargs):
        result = original(*args, **kwargs)
        action()
        return result

    setattr(extension, name, wrapper)


def finish_import(core):
    """What needs the Python classes that torch defines before it calls _initExtension."""
    import torch
    import torch.cuda
    import torch.version

    torch.version.cuda = torch.version.cuda or CUDA_VERSION
    torch.cuda._device_count_nvml = lambda: -1  # the driver, where there is one, knows of other devices
    storage.extend(torch, core)
