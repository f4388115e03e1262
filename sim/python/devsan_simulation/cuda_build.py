"""What a build of torch with CUDA has in its extension module, and must not be used: it leads to the driver."""

# Libraries of CUDA. Without them torch goes ways that the simulation covers.
FLAGS = ("_has_cudnn", "_has_cusparselt", "_has_magma")
MODULES = ("_cudnn", "_cusparselt")
PREFIXES = ("_cuda_", "_nccl_")
CLASSES = ("_MemPool",)


def hide(extension, covered):
    """`covered`: the names that the simulation defines. Other classes stay: they are bases and annotations elsewhere."""
    for name in FLAGS:
        if hasattr(extension, name):
            setattr(extension, name, False)
    for name in (*MODULES, *CLASSES):
        if hasattr(extension, name):
            delattr(extension, name)
    for name in dir(extension):
        if name.startswith(PREFIXES) and name not in covered and not isinstance(getattr(extension, name), type):
            delattr(extension, name)
    if hasattr(extension, "_jit_override_can_fuse_on_gpu"):
        extension._jit_override_can_fuse_on_gpu(False)  # TorchScript would compile kernels of its own
