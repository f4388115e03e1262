"""torch._C._CUDAGraph: sim/capture.cpp keeps the calls of operators, and a replay makes them again."""

import itertools

from .uncovered import Uncovered

CAPTURE_MODES = ("global", "thread_local", "relaxed")


def names(extension, core):
    pools = itertools.count(1)

    def graph_pool_handle():
        return (0, next(pools))

    class _CUDAGraph:
        def __new__(cls, keep_graph=False):
            self = super().__new__(cls)
            self._keep_graph = keep_graph
            self._captured = None
            self._pool = None
            return self

        def register_generator_state(self, generator):
            """Random numbers of a replay come from where its generators stand then, registered or not."""

        def capture_begin(self, pool=None, capture_error_mode="global"):
            if capture_error_mode not in CAPTURE_MODES:
                raise RuntimeError(
                    f"Unknown capture error mode. Expected `global`, `thread_local`, or `relaxed`, got {capture_error_mode}"
                )
            if self._captured is not None:
                raise RuntimeError("This CUDAGraph instance already owns a captured graph. To capture a new graph, "
                                   "create a new instance.")
            if extension._accelerator_getStream(extension._accelerator_hooks_get_current_device()).stream_id == 0:
                raise RuntimeError("CUDA graphs must be captured on a non-default stream. (However, after capture, "
                                   "it's ok to replay them on the default stream.)")
            self._pool = tuple(pool) if pool is not None else graph_pool_handle()
            core.begin_capture()

        def capture_end(self):
            self._captured = core.end_capture()

        def instantiate(self):
            if not self._keep_graph:
                raise RuntimeError("instantiate() is intended to be called by the user only when keep_graph=true")

        def replay(self):
            if self._captured is None:
                raise RuntimeError("Called CUDAGraph::replay without a preceding successful capture.")
            self._captured.replay()

        def reset(self):
            self._captured = None

        def pool(self):
            if self._captured is None and self._pool is None:
                raise RuntimeError("Called CUDAGraph::pool() without a preceding successful capture.")
            return self._pool

        def enable_debug_mode(self):
            Uncovered("torch.cuda.CUDAGraph.enable_debug_mode")()

        def debug_dump(self, path):
            Uncovered("torch.cuda.CUDAGraph.debug_dump")()

        def raw_cuda_graph(self):
            Uncovered("torch.cuda.CUDAGraph.raw_cuda_graph")()

        def raw_cuda_graph_exec(self):
            Uncovered("torch.cuda.CUDAGraph.raw_cuda_graph_exec")()

    return {
        "_CUDAGraph": _CUDAGraph,
        "_graph_pool_handle": graph_pool_handle,
        "_cuda_isCurrentStreamCapturing": core.is_capturing,
    }
