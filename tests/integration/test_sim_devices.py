"""torch.cuda on simulated devices: devices, streams, events, random numbers, memory, storages, what is not covered."""

import json
import textwrap

import pytest

# Collects one value for each name; an exception counts as its type and the first line of its message.
PRELUDE = """
import json, torch
told = {}
def tell(name, value):
    try:
        told[name] = value() if callable(value) else value
    except Exception as error:
        told[name] = f"{type(error).__name__}: {str(error).splitlines()[0]}"
"""


@pytest.fixture
def told(run_python):
    """Runs a program on two simulated devices and gives what it told."""

    def run(body, **options):
        result = run_python(PRELUDE + textwrap.dedent(body) + "\nprint(json.dumps(told))\n", sim=2, **options)
        assert result.status == 0, result.stderr
        return json.loads(result.stdout.splitlines()[-1])

    return run


def test_the_process_has_the_devices_that_were_asked_for(told):
    answers = told("""
        tell("available", torch.cuda.is_available)
        tell("built", torch.backends.cuda.is_built)
        tell("count", torch.cuda.device_count)
        tell("version", torch.version.cuda)
        tell("capability", lambda: list(torch.cuda.get_device_capability(1)))
        tell("memory", lambda: torch.cuda.get_device_properties(0).total_memory)
        tell("named as simulated", lambda: "simulated" in torch.cuda.get_device_name())
        tell("accelerator", lambda: str(torch.accelerator.current_accelerator()))
        tell("device 1", lambda: str(torch.zeros(1).to("cuda:1").device))
        tell("device 2", lambda: torch.zeros(1, device="cuda:2"))
        torch.cuda.set_device(1)
        tell("current", torch.cuda.current_device)
        with torch.cuda.device(0):
            tell("in a context", lambda: str(torch.zeros(1, device="cuda").device))
        tell("after it", lambda: str(torch.zeros(1, device="cuda").device))
    """)
    assert answers == {
        "available": True, "built": True, "count": 2, "version": "13.0", "capability": [9, 0], "memory": 80 << 30,
        "named as simulated": True, "accelerator": "cuda", "device 1": "cuda:1",
        "device 2": "AcceleratorError: CUDA error: invalid device ordinal",
        "current": 1, "in a context": "cuda:0", "after it": "cuda:1",
    }


@pytest.mark.parametrize("visible, count", [("1", 1), ("0,1", 2), ("", 0), ("-1", 0), ("0,0", 0), ("0,7,1", 1)])
def test_cuda_visible_devices_limits_them_as_it_limits_real_ones(run_python, visible, count):
    result = run_python("import torch; print(torch.cuda.device_count(), torch.cuda.is_available())", sim=2,
                        env={"CUDA_VISIBLE_DEVICES": visible})
    assert result.stdout.split() == [str(count), str(count > 0)]


def test_every_name_that_torch_uses_from_a_cuda_build_is_there_and_an_uncovered_one_says_so(told):
    answers = told("""
        import pathlib, re
        wanted = set()
        for path in pathlib.Path(torch.__file__).parent.joinpath("cuda").glob("*.py"):
            wanted |= set(re.findall(r"\\b_C\\.(_cuda_\\w+|_Cuda\\w+|_nccl_\\w+)", path.read_text()))
        known = {"_cuda_getHipblasltVersion", "_cuda_CUDAAllocator"}  # of ROCm; and a type, for which torch has a dummy
        tell("missing", lambda: sorted(name for name in wanted - known if not hasattr(torch._C, name)))
        tell("many", lambda: len(wanted) > 60)
        tell("snapshot", torch.cuda.memory_snapshot)
        tell("graph", lambda: torch.cuda.CUDAGraph().raw_cuda_graph())
        tell("handle", torch.cuda.current_blas_handle)
        tell("runtime", lambda: torch.cuda.cudart().cudaMalloc(8))
        tell("operator", lambda: torch.ops.aten._masked_scale(*[torch.ones(2, device="cuda")] * 2, 2.0))
    """)
    assert answers.pop("missing") == []
    assert answers.pop("many")
    for name, words in {"snapshot": "_cuda_memorySnapshot", "graph": "CUDAGraph", "handle": "getCurrentBlasHandle",
                        "runtime": "cudaMalloc", "operator": "_masked_scale"}.items():
        assert answers[name].startswith("NotImplementedError: devsan's simulated"), answers[name]
        assert words in answers[name]


def test_streams_have_identities_and_events_measure_time(told):
    answers = told("""
        mine, other = torch.cuda.Stream(), torch.cuda.Stream()
        tell("distinct", lambda: mine != other and mine != torch.cuda.default_stream())
        tell("default is current", lambda: torch.cuda.current_stream() == torch.cuda.default_stream())
        with torch.cuda.stream(mine):
            tell("entered", lambda: torch.cuda.current_stream() == mine)
        tell("left", lambda: torch.cuda.current_stream() == torch.cuda.default_stream())
        tell("on device 1", lambda: str(torch.cuda.Stream(device=1).device))
        tell("priority", lambda: [torch.cuda.Stream(priority=-1).priority, mine.priority])
        tell("idle", lambda: mine.query() and mine.synchronize() is None and torch.cuda.synchronize() is None)
        before, after = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        before.record()
        torch.ones(300, 300, device="cuda") @ torch.ones(300, 300, device="cuda")
        after.record()
        tell("time passed", lambda: before.elapsed_time(after) > 0)
        tell("done", lambda: after.query() and after.synchronize() is None)
        tell("untimed", lambda: torch.cuda.Event().elapsed_time(after))
        tell("waits", lambda: mine.wait_stream(other) is None and mine.record_event().wait(other) is None)
    """)
    assert answers.pop("on device 1") == "cuda:1"
    assert answers.pop("priority") == [-1, 0]
    assert answers.pop("untimed") == "ValueError: Both events must be created with argument 'enable_timing=True'."
    assert set(answers.values()) == {True}


def test_random_numbers_come_from_the_devices_own_generators(told):
    answers = told("""
        def draw(**options):
            return torch.randn(4, device="cuda", **options).tolist()
        torch.manual_seed(3)
        first, state, second = draw(), torch.cuda.get_rng_state(), draw()
        torch.cuda.set_rng_state(state)
        tell("restored state", lambda: draw() == second and first != second)
        torch.cuda.manual_seed(3)
        tell("same seed", lambda: draw() == first)
        generator = torch.Generator(device="cuda").manual_seed(3)
        tell("own generator", lambda: draw(generator=generator) == first)
        tell("devices differ", lambda: torch.cuda.default_generators[0] is not torch.cuda.default_generators[1])
        torch.manual_seed(3)
        undisturbed = torch.randn(4).tolist()
        torch.manual_seed(3)
        torch.nn.functional.dropout(torch.ones(100, device="cuda"))
        tell("CPU untouched", lambda: torch.randn(4).tolist() == undisturbed)
        with torch.random.fork_rng():
            draw()
        tell("state size", lambda: len(torch.cuda.get_rng_state()))
        tell("CPU generator", lambda: draw(generator=torch.Generator()))
        tell("CUDA generator", lambda: torch.randn(2, generator=generator))
    """)
    assert answers.pop("state size") == 16  # CUDA's: a seed and an offset
    assert answers.pop("CPU generator") == "RuntimeError: Expected a 'cuda' device type for generator but found 'cpu'"
    assert answers.pop("CUDA generator") == "RuntimeError: Expected a 'cpu' device type for generator but found 'cuda'"
    assert set(answers.values()) == {True}


def test_memory_statistics_count_what_is_allocated(told):
    answers = told("""
        start = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        made = torch.empty(1 << 20, device="cuda")
        doubled = made * 2
        tell("two tensors", lambda: torch.cuda.memory_allocated() - start)
        tell("rounded", lambda: (torch.empty(3, device="cuda:1"), torch.cuda.memory_allocated(1))[1])
        del made, doubled
        tell("freed", lambda: torch.cuda.memory_allocated() - start)
        tell("peak", lambda: torch.cuda.max_memory_allocated() - start)
        tell("reserved", lambda: torch.cuda.memory_reserved() >= 8 << 20)
        torch.cuda.empty_cache()
        tell("emptied", lambda: torch.cuda.memory_reserved())
        tell("free", lambda: list(torch.cuda.mem_get_info()))
        tell("summary", lambda: "Allocated memory" in torch.cuda.memory_summary())
    """)
    assert answers == {"two tensors": 8 << 20, "rounded": 512, "freed": 0, "peak": 8 << 20, "reserved": True,
                       "emptied": 0, "free": [80 << 30, 80 << 30], "summary": True}


def test_a_device_that_is_full_raises_pytorchs_error(told):
    answers = told("""
        kept = torch.empty(700 << 20, dtype=torch.uint8, device="cuda")
        tell("too much", lambda: torch.empty(400 << 20, dtype=torch.uint8, device="cuda"))
        tell("other device", lambda: torch.empty(400 << 20, dtype=torch.uint8, device="cuda:1").numel() >> 20)
        del kept
        tell("after freeing", lambda: torch.empty(400 << 20, dtype=torch.uint8, device="cuda").numel() >> 20)
    """, options=["--sim-memory", "1G"])
    assert answers["too much"].startswith(
        "OutOfMemoryError: CUDA out of memory. Tried to allocate 400.00 MiB. GPU 0 has a total capacity of 1024.00 MiB")
    assert (answers["other device"], answers["after freeing"]) == (400, 400)


def test_storages_pinned_memory_and_checkpoints(told):
    answers = told("""
        import io
        on_host = torch.ones(3)
        tell("pinned", lambda: [on_host.is_pinned(), on_host.pin_memory().is_pinned(),
                                torch.empty(2, pin_memory=True).is_pinned(), on_host.cuda().is_pinned()])
        tell("pinning a device tensor", lambda: on_host.cuda().pin_memory())
        tell("asynchronous copy", lambda: on_host.cuda().to("cpu", non_blocking=True).is_pinned())
        tell("storage", lambda: str(torch.UntypedStorage(8, device="cuda:1").device))
        tensor = torch.arange(4.0, device="cuda")
        storage = tensor.untyped_storage()
        storage.resize_(0)
        emptied = storage.size()
        storage.resize_(16)
        tell("resized", lambda: [emptied, storage.size(), torch.cuda.memory_allocated()])
        file = io.BytesIO()
        torch.save({"a": on_host.cuda(), "b": on_host.to("cuda:1")}, file)
        def load(place):
            file.seek(0)
            return [str(tensor.device) for tensor in torch.load(file, map_location=place).values()]
        tell("loaded", lambda: load(None))
        tell("mapped", lambda: [load("cpu"), load("cuda:1"), load({"cuda:1": "cuda:0"})])
        tell("old types", lambda: [str(torch.cuda.FloatTensor([1.0]).device),
                                   isinstance(tensor, torch.cuda.FloatTensor),
                                   on_host.type(torch.cuda.HalfTensor).type()])
    """)
    assert answers == {
        "pinned": [False, True, True, False],
        "pinning a device tensor":
            "RuntimeError: cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned",
        "asynchronous copy": True,
        "storage": "cuda:1",
        "resized": [0, 16, 512],
        "loaded": ["cuda:0", "cuda:1"],
        "mapped": [["cpu", "cpu"], ["cuda:1", "cuda:1"], ["cuda:0", "cuda:0"]],
        "old types": ["cuda:0", True, "torch.cuda.HalfTensor"],
    }


def test_a_fork_child_of_a_process_that_used_cuda_cannot_use_it(told):
    answers = told("""
        import multiprocessing
        torch.zeros(1, device="cuda")
        def child(queue):
            tell("child", lambda: str(torch.zeros(1, device="cuda").device))
            queue.put(told["child"])
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        process = context.Process(target=child, args=(queue,))
        process.start()
        tell("child", queue.get())
        process.join()
    """)
    assert answers["child"].startswith("RuntimeError: Cannot re-initialize CUDA in forked subprocess.")
