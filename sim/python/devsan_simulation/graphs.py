"""torch._C._CUDAGraph: sim/capture.cpp keeps the calls of operators, and a replay makes them again."""

import itertools

from .uncovered import Uncovered

CAPTURE_MODES = ("global", "thread_local", "relaxed")

# What leads to the graph's inside, or makes more of it than a list of calls.
UNCOVERED_METHODS = """
begin_capture_to_if_node begin_capture_to_while_node debug_dump enable_debug_mode end_capture_to_conditional_node
get_currently_capturing_graph raw_cuda_graph raw_cuda_graph_exec set_conditional_handle_for_current_node
""".split()


def require(condition, message):
    if not condition:
        raise RuntimeError(message)


def names(extension, core):
    pools = itertools.count(1)

    def graph_pool_handle():
        return (0, next(pools))

    class _CUDAGraph:
        """Its Python class in torch calls capture_end until 2.13, and the steps of it from 2.14 on."""

        def __new__(cls, keep_graph=False):
            self = super().__new__(cls)
            self._keep_graph = keep_graph
            self._captured = None
            self._has_graph_exec = False
            self._is_capturing = False
            self._pools = []  # its own, then the others that it retains
            return self

        def register_generator_state(self, generator):
            """Random numbers of a replay come from where its generators stand then, registered or not."""

        def capture_begin(self, pool=None, capture_error_mode="global"):
            require(capture_error_mode in CAPTURE_MODES, "Unknown capture error mode. Expected `global`, `thread_local`, "
                    f"or `relaxed`, got {capture_error_mode}")
            require(not self._has_graph_exec, "This CUDAGraph instance already owns a captured graph. To capture a new "
                    "graph, create a new instance.")
            stream = extension._accelerator_getStream(extension._accelerator_hooks_get_current_device())
            require(stream.stream_id != 0, "CUDA graphs must be captured on a non-default stream. (However, after capture, "
                    "it's ok to replay them on the default stream.)")
            self._pools = [tuple(pool) if pool is not None else graph_pool_handle()]
            core.begin_capture()
            self._is_capturing = True

        def capture_end_pre(self):
            self._is_capturing = False
            self._captured = core.end_capture()

        def capture_end_post(self):
            """What hardware frees here, the simulation does not have."""

        def capture_end(self):
            _CUDAGraph.capture_end_pre(self)
            if not self._keep_graph:
                _CUDAGraph.instantiate(self)
            _CUDAGraph.capture_end_post(self)

        def instantiate(self):
            require(self._captured is not None, "capture_end() must have been called before calling instantiate")
            require(self._keep_graph or not self._has_graph_exec,
                    "instantiate() is intended to be called by the user only when keep_graph=true")
            self._has_graph_exec = True

        def replay(self):
            require(self._captured is not None, "Called CUDAGraph::replay without a preceding successful capture.")
            if not self._has_graph_exec:
                _CUDAGraph.instantiate(self)
            self._captured.replay()

        def reset(self):
            self._captured = None
            self._has_graph_exec = False
            self._pools = []

        def pool(self):
            require(self._captured is not None, "Called CUDAGraph::pool() without a preceding successful capture.")
            return self._pools[0]

        def pools(self):
            require(self._captured is not None, "Called CUDAGraph::pools() without a preceding successful capture.")
            return list(self._pools)

        def _retain_pool(self, pool):
            require(self._is_capturing, "CUDAGraph::retain_pool may only be called during capture.")
            if tuple(pool) not in self._pools:
                self._pools.append(tuple(pool))

    for name in UNCOVERED_METHODS:
        setattr(_CUDAGraph, name, Uncovered(f"torch.cuda.CUDAGraph.{name}"))
    return {
        "_CUDAGraph": _CUDAGraph,
        "_graph_pool_handle": graph_pool_handle,
        "_cuda_isCurrentStreamCapturing": core.is_capturing,
    }
