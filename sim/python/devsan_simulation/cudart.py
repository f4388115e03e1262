"""torch._C._cudart: the functions of CUDA's runtime that torch exports."""

import enum

from .uncovered import Uncovered


class cudaError(enum.IntEnum):
    success = 0


class Cudart:
    cudaError = cudaError

    def __init__(self, extension):
        self.cudaMemGetInfo = extension._accelerator_getMemoryInfo

    def cudaGetErrorString(self, error):
        return "no error" if error == cudaError.success else f"CUDA error {int(error)}"

    def cudaProfilerStart(self):
        return cudaError.success

    def cudaProfilerStop(self):
        return cudaError.success

    def cudaHostRegister(self, pointer, size, flags):
        return cudaError.success

    def cudaHostUnregister(self, pointer):
        return cudaError.success

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Uncovered(f"torch.cuda.cudart().{name}")


def names(extension, core):
    return {"_cudart": Cudart(extension)}
