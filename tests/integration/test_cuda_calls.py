"""Calls of CUDA's driver and runtime are seen however a program comes to them, and do what they do without devsan.

There is no GPU here: cuda_programs/ has a driver that keeps books and copies nothing, and programs that use it.
"""

import collections
import re

import pytest

from harness import ROOT, view
from preload_toys import preload, toys  # noqa: F401 (fixtures)

PROGRAMS = "../cuda_programs"
SOURCES = ROOT / "tests/integration/cuda_programs"

# By the handle of the library, through the global scope, by version, and as the driver itself gives them.
WAYS = ["symbol", "scope", "version", "proc1", "proc2", "proc2-per-thread", "direct-lazy", "direct-now"]


class Cuda:
    """Builds the stand-ins, and runs programs with the driver on the library path."""

    def __init__(self, toys, preload, devsan):
        self.toys = toys
        self.preload = preload
        self.devsan = devsan
        script = toys.folder / "versions.map"
        script.write_text("FAKE_1 { global: *; };\n")
        self.folder = toys.shared("cuda/libcuda.so.1", f"{PROGRAMS}/fake_libcuda.c", "-lpthread",
                                  "-Wl,-soname,libcuda.so.1", f"-Wl,--version-script={script}").parent
        self.link_torch = ("-Wl,--no-as-needed", *toys.link_torch, "-Wl,--as-needed")

    def driver_program(self, way):
        if not way.startswith("direct"):
            return self.toys.build("driver_program", f"{PROGRAMS}/driver_program.c", *self.link_torch, "-lpthread")
        return self.toys.build(f"driver_program-{way}", f"{PROGRAMS}/driver_program.c", "-DDIRECT",
                               f"-Wl,-z,{way.split('-')[1]}", *self.link_torch, f"-L{self.folder}", "-l:libcuda.so.1",
                               "-lpthread")

    def environment(self, name):
        """Errors that the driver returned are written to a file of that name."""
        return {"LD_LIBRARY_PATH": str(self.folder), "CUDA_LOG_FILE": str(self.error_log(name))}

    def error_log(self, name):
        return self.preload.folder.parent / f"errors-{name}"

    def errors(self, name):
        log = self.error_log(name)
        return log.read_text().splitlines() if log.exists() else []

    def plain(self, *command):
        return self.preload.plain(*command, env=self.environment("plain"))

    def run(self, *command, env=None, **settings):
        """The program with devsan: what it printed, and what its traces tell, by process in the order of their start."""
        done = self.preload.run(*command, env=self.environment("devsan") | (env or {}), **settings)
        assert done.status == 0, done
        report = view(self.devsan, self.preload.traces()[0].parent)
        assert report["damage"] == []
        return done, [process.get("device_calls") for process in report["run"]["processes"]]

    def same_and_seen(self, *command):
        """Checks that devsan changes nothing, and gives what was seen of the only process."""
        plain = self.plain(*command)
        assert plain.status == 0, plain
        done, processes = self.run(*command)
        assert done == plain
        assert self.errors("devsan") == self.errors("plain")
        assert len(processes) == 1
        return processes[0]

    def told(self, *command):
        """What the hooks are told while the program runs."""
        file = self.preload.folder.parent / "told"
        self.run(*command, env={"TOLD_FILE": str(file)})
        return file.read_text().splitlines()


@pytest.fixture
def cuda(toys, preload, devsan):  # noqa: F811
    return Cuda(toys, preload, devsan)


def memory(seen):
    """Live and peak bytes by device and space."""
    return {(entry["device"], entry["space"]): (entry["live"], entry["peak"]) for entry in seen["memory"]}


def counted(seen, call):
    """The counters of one call, added up."""
    total = collections.Counter()
    for entry in seen["calls"]:
        if entry["call"] == call:
            total.update({key: entry[key] for key in ("count", "failed", "captured", "waits", "bytes")})
    return dict(total)


def last(seen, call):
    """What is known of the calls of one name, oldest first."""
    return [entry for entry in reversed(seen["last"]) if entry["call"] == call]


# ---- every way

@pytest.mark.parametrize("way", WAYS)
def test_calls_are_seen_however_a_program_comes_to_them(cuda, way):
    seen = cuda.same_and_seen(cuda.driver_program(way), way, "basic")
    assert memory(seen) == {("cuda:0", "device"): (5120, 1053696), ("cuda:0", "managed"): (0, 4096),
                            (None, "pinned"): (65536, 65536), (None, "registered"): (0, 256)}
    copy, wait = "cuMemcpyHtoD_v2", "cuStreamSynchronize"
    if way == "proc2-per-thread":
        copy, wait = "cuMemcpyHtoD_v2_ptds", "cuStreamSynchronize_ptsz"
    assert counted(seen, copy)["bytes"] == 100 and counted(seen, wait)["waits"] == 1
    assert counted(seen, "cuMemFree_v2") == {"count": 3, "failed": 0, "captured": 0, "waits": 0, "bytes": 1052672}
    assert seen["made"] == 11


def test_a_call_of_the_runtime_and_that_of_the_driver_in_it_are_one(cuda, toys):
    runtime = toys.shared("cuda/libcudart.so.12", f"{PROGRAMS}/fake_cudart.c", "-Wl,-soname,libcudart.so.12")
    program = toys.build("runtime_program", f"{PROGRAMS}/runtime_program.c", *cuda.link_torch, f"-L{runtime.parent}",
                         "-l:libcudart.so.12")
    seen = cuda.same_and_seen(program)
    assert [call["call"] for call in reversed(seen["last"])] == [
        "cudaMalloc", "cudaHostAlloc", "cudaMemcpy", "cudaMemcpy", "cudaDeviceSynchronize", "cudaFree", "cudaFreeHost"]
    assert memory(seen) == {("cuda:2", "device"): (0, 5000), (None, "pinned"): (0, 300)}
    assert {entry["device"] for entry in last(seen, "cudaMemcpy")} == {"cuda:2"}


def test_a_runtime_that_is_linked_into_the_program_is_seen_at_the_driver(cuda, toys):
    program = toys.build("static_runtime", f"{PROGRAMS}/runtime_program.c",
                         SOURCES / "fake_cudart.c", *cuda.link_torch)
    seen = cuda.same_and_seen(program)
    assert {call["call"] for call in seen["calls"]} == {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemcpyHtoD_v2",
                                                        "cuMemcpyDtoH_v2", "cuCtxSynchronize", "cuMemFree_v2",
                                                        "cuMemFreeHost"}
    assert memory(seen) == {("cuda:2", "device"): (0, 5000), (None, "pinned"): (0, 300)}


def test_two_runtimes_in_a_process_each_get_their_own_calls(cuda, toys):
    """One is linked with the program, another is brought by a plugin; their drivers are the same."""
    for name in ("12", "11"):
        toys.shared(f"cuda/libcudart.so.{name}", f"{PROGRAMS}/fake_cudart.c", f"-Wl,-soname,libcudart.so.{name}")
    program = toys.build("two_runtimes", f"{PROGRAMS}/two_runtimes.c", *cuda.link_torch, f"-L{cuda.folder}",
                         "-l:libcudart.so.12")
    seen = cuda.same_and_seen(program)
    assert counted(seen, "cudaMalloc")["bytes"] == 12 + 11
    assert seen["made"] == 2


def test_of_a_driver_newer_than_the_list_only_what_is_certainly_the_same_is_seen(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "future")
    assert [call["call"] for call in seen["calls"]] == ["cuMemFree_v2"]


def test_a_driver_that_is_unloaded_and_loaded_again_is_seen_each_time(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "reload")
    assert counted(seen, "cuMemAlloc_v2")["count"] == 10
    assert memory(seen) == {("cuda:0", "device"): (0, 100)}


def test_nothing_is_recorded_of_a_program_without_torch(cuda, toys, preload):  # noqa: F811
    program = toys.build("without_torch", f"{PROGRAMS}/without_torch.c", f"-L{cuda.folder}", "-l:libcuda.so.1")
    plain = cuda.plain(program)
    assert plain.stdout == "alloc: 0\nfree: 0\n"
    assert preload.run(program, env={"LD_LIBRARY_PATH": str(cuda.folder)}) == plain
    assert preload.files() == []


# ---- what a call did

def test_copies_have_a_direction_and_the_host_waits_for_some(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "copies")
    copies = {entry["bytes"]: (entry["direction"], entry["async"], entry["pageable"], entry["waits"])
              for entry in seen["calls"] if entry["kind"] == "copy"}
    assert copies == {
        10: ("host-to-device", False, True, 1),
        11: ("host-to-device", False, False, 1),
        12: ("device-to-host", False, True, 1),
        13: ("device-to-device", False, False, 0),
        14: ("host-to-device", True, True, 0),
        15: ("device-to-host", True, False, 0),
        16: ("device-to-host", True, True, 1),
        17: ("device-to-host", False, True, 1),
        18: ("device-to-host", False, False, 1),
    }
    assert {entry["device"] for entry in seen["calls"] if entry["kind"] == "copy"} == {"cuda:1"}


def test_a_query_that_says_done_is_a_wait_and_one_that_does_not_is_none(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "waits")
    for query in ("cuEventQuery", "cuStreamQuery"):
        assert counted(seen, query) == {"count": 2, "failed": 0, "captured": 0, "waits": 1, "bytes": 0}
        assert [entry["result"] for entry in last(seen, query)] == [600, 0]
    assert counted(seen, "cuStreamWaitEvent")["waits"] == 0
    assert counted(seen, "cuEventRecord")["waits"] == 0


def test_calls_belong_to_the_device_of_their_stream_or_event_not_to_the_current_one(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "waits")
    assert [entry["device"] for entry in last(seen, "cuEventSynchronize")] == ["cuda:0"]
    assert [entry["device"] for entry in last(seen, "cuStreamSynchronize")] == ["cuda:0"]
    assert [entry["device"] for entry in last(seen, "cuCtxSynchronize")] == ["cuda:2"]


def test_memory_of_a_pool_belongs_to_the_pools_device(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "pools")
    assert memory(seen) == {("cuda:0", "device"): (4000, 5000), ("cuda:2", "device"): (2000, 2000)}


def test_physical_memory_lives_as_long_as_a_handle_or_a_mapping(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "virtual")
    assert memory(seen) == {("cuda:3", "device"): (4 << 20, 4 << 20), (None, "pinned"): (4096, 4096)}
    assert [entry["device"] for entry in last(seen, "cuMemMap")] == ["cuda:3"] * 3
    assert [entry["kind"] for entry in seen["calls"] if entry["call"] == "cuMemSetAccess"] == ["set-access"]


def test_what_is_captured_is_not_carried_out(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "capture")
    assert memory(seen) == {("cuda:0", "device"): (0, 512), (None, "pinned"): (64, 64)}
    for call, done in [("cuMemAllocAsync", 1), ("cuMemFreeAsync", 1), ("cuMemcpyHtoDAsync_v2", 0),
                       ("cuMemcpyDtoHAsync_v2", 0), ("cuEventRecord", 0)]:
        numbers = counted(seen, call)
        assert (numbers["count"], numbers["captured"], numbers["waits"]) == (done, 1, 0), call


def test_a_capture_stays_valid_whichever_thread_works_on_its_streams(cuda):
    """Streams take part in a capture by events; their devices are known where the calling thread has no context."""
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "captures")
    assert cuda.errors("plain") == []
    for call, done, captured in [("cuMemcpyHtoDAsync_v2", 6, 3), ("cuMemcpyDtoHAsync_v2", 0, 3),
                                 ("cuStreamWaitEvent", 0, 6), ("cuEventRecord", 0, 6), ("cuMemAllocAsync", 3, 0)]:
        numbers = counted(seen, call)
        assert (numbers["count"], numbers["captured"]) == (done, captured), call
    assert {entry["device"] for entry in last(seen, "cuEventRecord")} == {"cuda:1"}
    assert {entry["device"] for entry in last(seen, "cuMemAllocAsync")} == {"cuda:0"}


def test_a_capture_that_failed_is_over(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "invalid-capture")
    assert len(cuda.errors("plain")) == 3  # the program's own
    copy, = (entry for entry in seen["calls"] if entry["call"] == "cuMemcpyDtoHAsync_v2")
    assert (copy["captured"], copy["pageable"], copy["waits"]) == (0, True, 1)


def test_a_driver_that_serves_nobody_is_asked_nothing(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "refused")
    assert len(cuda.errors("plain")) == 4  # the program's own calls
    assert counted(seen, "cuMemFree_v2")["failed"] == 2


def test_hooks_are_told_what_becomes_of_streams_and_events(cuda):
    """Those of a device that is not current by their own device, blocking ones as the default stream, captured ones not."""
    told = cuda.told(cuda.driver_program("symbol"), "symbol", "streams")
    own, far = "cuda:0 5000", "cuda:2 5020"
    assert told == [f"recorded 0x7100 {own}", f"waits-for {far} 0x7100", "recorded 0x7200 cuda:0 0",
                    "waits-for cuda:2 0 0x7200", "asked 0x7100", "waited 0x7200", f"asked {own}", f"waited {far}",
                    "waited cuda:0 0", "waited cuda:2 0", f"waited {far}", "waited cuda:2", "destroyed 0x7100",
                    f"stream-destroyed {own}", "waited cuda:2"]


def test_calls_that_fail_return_what_they_returned_and_change_no_books(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "failures")
    assert memory(seen) == {("cuda:0", "device"): (300, 300)}
    assert counted(seen, "cuMemAlloc_v2") == {"count": 2, "failed": 1, "captured": 0, "waits": 0, "bytes": 300}
    failed = last(seen, "cuMemAlloc_v2")[-1]
    assert (failed["result"], failed["bytes"], failed["device"]) == (2, 1 << 40, "cuda:0")
    assert counted(seen, "cuStreamSynchronize") == {"count": 0, "failed": 1, "captured": 0, "waits": 0, "bytes": 0}
    assert counted(seen, "cuIpcOpenMemHandle_v2")["count"] == 1


# ---- processes and threads

def test_threads_with_contexts_of_their_own_lose_nothing(cuda):
    seen = cuda.same_and_seen(cuda.driver_program("symbol"), "symbol", "threads")
    assert counted(seen, "cuMemAlloc_v2")["count"] == 8 * 2001
    assert counted(seen, "cuMemFree_v2") == {"count": 16000, "failed": 0, "captured": 0, "waits": 0,
                                             "bytes": 16000 * 4096}
    assert {key: live for key, (live, _) in memory(seen).items()} == {
        (f"cuda:{device}", "device"): 2 * (1000 + device) for device in range(4)}
    assert seen["made"] == 8 * 2001 + 16000
    assert {entry["device"] for entry in seen["calls"]} == {f"cuda:{device}" for device in range(4)}


def test_a_forked_child_keeps_books_of_its_own(cuda):
    program = cuda.driver_program("symbol")
    plain = cuda.plain(program, "symbol", "fork")
    done, processes = cuda.run(program, "symbol", "fork")
    # The toy hooks answer for torch's operator; everything else is the same.
    assert sorted(done.stdout.splitlines()) == sorted(plain.stdout.splitlines())
    books = sorted(memory(seen)[("cuda:0", "device")] for seen in processes)
    assert books == [(20, 20), (4000, 4000)]


def test_the_documentation_names_every_call_of_the_list():
    listed = (ROOT / "preload/cuda_calls.def").read_text()
    documented = (ROOT / "docs/cuda-calls.md").read_text()
    driver = set(re.findall(r"DEVSAN_CUDA_(?:CALL|TWICE)\(\w+, (cu\w+),", listed))
    runtime = set(re.findall(r"DEVSAN_CUDA_RUNTIME_(?:CALL|TWICE)\((cuda\w+),", listed))
    assert len(driver) > 40 and len(runtime) > 25
    copies = {name for name in driver if name.startswith("cuMemcpy")}  # "and all its forms"
    assert [name for name in sorted(driver - copies | runtime) if f"`{name}`" not in documented] == []
