"""CUDA graphs are not simulated: nothing is ever being captured, and a graph cannot be made."""

from .uncovered import Uncovered


def names(extension, core):
    class _CUDAGraph:
        def __new__(cls, *args, **kwargs):
            Uncovered("torch.cuda.CUDAGraph")()

    return {
        "_CUDAGraph": _CUDAGraph,
        "_graph_pool_handle": Uncovered("torch.cuda.graph_pool_handle"),
        "_cuda_isCurrentStreamCapturing": lambda: False,
    }
