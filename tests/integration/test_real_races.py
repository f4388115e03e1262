"""Races on devices that are not simulated: streams, events and copies are known by the calls of CUDA's that pass by.

There is no GPU here. A library gives a torch without CUDA tensors on "cuda", whose copies, streams and events are calls of
the CUDA runtime in cuda_programs/, as those of a CUDA build are.
"""

import subprocess
import textwrap

import pytest
from harness import ROOT, is_cuda_build
from preload_toys import Toys
from test_hidden_traffic import marked
from test_hooks_custom_ops import BUILD

SOURCES = ROOT / "tests/integration/cuda_programs"


@pytest.fixture(scope="module")
def backend(python, tmp_path_factory):
    """The folder of libbackend.so, and of the fake runtime and driver that it needs."""
    if is_cuda_build(python):
        pytest.skip("this torch is built with CUDA: its own kernels and runtime come before the library's")
    toys = Toys(tmp_path_factory.mktemp("backend"))
    toys.shared("libcuda.so.1", "../cuda_programs/fake_libcuda.c", "-lpthread", "-Wl,-soname,libcuda.so.1")
    runtime = toys.shared("libcudart.so.12", "../cuda_programs/fake_cudart.c", "-Wl,-soname,libcudart.so.12")
    done = subprocess.run([python, "-W", "ignore", "-c", BUILD], capture_output=True, text=True, check=True)
    abi, *paths = done.stdout.split()
    toys.shared("libbackend.so", "../cuda_programs/torch_backend.cpp", "-std=c++20", f"-D_GLIBCXX_USE_CXX11_ABI={abi}",
                *paths, "-ltorch_cpu", "-lc10", f"-L{toys.folder}", "-l:libcudart.so.12")
    return runtime.parent


BEGIN = """
    import ctypes
    import sys
    import torch

    cuda = ctypes.CDLL(sys.argv[1])
    cuda.new_pinned.restype = ctypes.c_void_p
    cuda.query.restype = cuda.end_capture.restype = ctypes.c_bool
    cuda.start_backend()
    torch.cuda._lazy_init = lambda: None
    device = torch.device("cuda", 0)
    event, other_event = ctypes.c_void_p(0x7100), ctypes.c_void_p(0x7200)
    side, other = cuda.new_stream(), cuda.new_stream()
    gpu = torch.ones(16).to(device)


    def pinned():
        memory = (ctypes.c_float * 16).from_address(cuda.new_pinned(64))
        return torch.frombuffer(memory, dtype=torch.float32).fill_(1)


    def fetch():
        return pinned().copy_(gpu, non_blocking=True)  # to the host


    def send(source):
        return torch.empty(16, device=device).copy_(source, non_blocking=True)  # to the device


"""

RACES = BEGIN + """
    fetch().sum()  # read
    fetch().add_(1)  # changed
    total = fetch().numpy().sum()  # read by numpy
    staging = pinned()
    there = send(staging)
    staging.sum()
    staging.fill_(2)  # source changed
    cuda.set_stream(side)
    late = send(pinned())
    cuda.set_stream(0)
    late * 2  # used by another stream
    cuda.set_stream(side)
    host = fetch()
    cuda.set_stream(other)
    gpu.mul_(0.5)  # changed by another stream
    cuda.set_stream(side)
    again = send(pinned())
    cuda.set_stream(other)
    cuda.record(event, other)  # which has nothing before it
    cuda.wait_event(0, event)
    cuda.set_stream(0)
    again * 2  # the wrong wait
    cuda.synchronize()
    cuda.set_stream(side)
    host = fetch()
    cuda.set_stream(0)
    cuda.record(event, 0)
    cuda.synchronize_event(event)
    host.sum()  # another stream's event
    print(total, gpu.sum().item())
"""


def test_uses_that_nothing_orders_are_races_at_their_lines(backend, run_python):
    path = {"LD_LIBRARY_PATH": str(backend)}
    plain = run_python(RACES, backend / "libbackend.so", plain=True, env=path)
    result = run_python(RACES, backend / "libbackend.so", options=["--quiet"], env=path)
    assert plain.status == 0, plain.stderr
    assert (result.status, result.stdout) == (0, plain.stdout), result.stderr
    assert marked(RACES, result, "async-race") == sorted([
        "read", "changed", "read by numpy", "source changed", "used by another stream", "changed by another stream",
        "the wrong wait", "another stream's event"])
    lines = textwrap.dedent(RACES).splitlines()
    causes = {lines[f["root_cause"]["line"] - 1].rpartition("# ")[2] for f in result.findings if f["kind"] == "async-race"}
    assert causes == {"to the host", "to the device"}


IN_ORDER = BEGIN + """
    host = fetch()
    cuda.synchronize()
    host.sum()

    host = fetch()
    cuda.record(event, 0)
    while not cuda.query(event):
        pass
    host.add_(1)

    host = fetch()
    gpu.sum().item()  # waits for the stream
    host.sum()

    cuda.set_stream(side)
    late = send(pinned())
    cuda.record(event, side)
    cuda.set_stream(other)
    cuda.wait_event(other, event)
    late * 2
    cuda.record(other_event, other)  # which comes after the copy as well
    cuda.wait_event(0, other_event)
    cuda.set_stream(0)
    late * 3

    staging = pinned()
    there = send(staging)
    there * 2
    cuda.record(event, 0)
    cuda.synchronize_event(event)
    staging.fill_(3)

    slots = pinned()
    slots[:8].copy_(gpu[:8], non_blocking=True)
    slots[8:].sum()

    torch.ones(16).copy_(gpu, non_blocking=True).sum()  # pageable, and so not asynchronous
    print("done")
"""


def test_what_is_waited_for_is_no_race_however_that_is_done(backend, run_python):
    path = {"LD_LIBRARY_PATH": str(backend)}
    result = run_python(IN_ORDER, backend / "libbackend.so", options=["--quiet"], env=path)
    assert (result.status, result.stdout) == (0, "done\n"), result.stderr
    assert [f["where"]["line"] for f in result.findings if f["kind"] == "async-race"] == []
    assert [f["severity"] for f in result.findings if f["kind"] == "unpinned-async-copy"] == ["warning"]


FORKED = BEGIN + """
    import os

    child = os.fork()
    if child == 0:
        mine = cuda.new_stream()  # before any operator of this process
        cuda.set_stream(mine)
        late = send(pinned())
        cuda.set_stream(0)
        late * 2  # in a child
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_stream_that_a_forked_child_makes_before_its_first_operator_is_known(backend, run_python):
    path = {"LD_LIBRARY_PATH": str(backend)}
    result = run_python(FORKED, backend / "libbackend.so", options=["--quiet"], env=path)
    assert (result.status, result.stdout) == (0, "0\n"), result.stderr
    assert marked(FORKED, result, "async-race") == ["in a child"]


CAPTURE = BEGIN + """
    import threading


    def upload():  # as autograd does it: on a thread of its own, which has no context
        cuda.set_stream(side)
        there.copy_(staging, non_blocking=True)
        there.mul_(2)


    staging, result = pinned(), pinned()
    there = torch.empty(16, device=device)
    gradient = torch.ones(16, device=device)
    graphs = 0
    for step in range(3):
        cuda.set_stream(side)
        cuda.begin_capture(side)
        thread = threading.Thread(target=upload)
        thread.start()
        thread.join()
        result.copy_(there, non_blocking=True)  # into the graph
        cuda.record(event, side)
        cuda.wait_event(other, event)
        cuda.set_stream(other)
        gradient.add_(1)
        cuda.record(event, other)
        cuda.wait_event(side, event)
        graphs += cuda.end_capture(side)
        cuda.set_stream(0)
        result.sum()
    print(graphs, "graphs")
"""


def test_work_of_another_thread_is_captured_into_a_graph_as_without_devsan(backend, run_python, tmp_path):
    said = {}
    for name in ("plain", "devsan"):
        env = {"LD_LIBRARY_PATH": str(backend), "CUDA_LOG_FILE": str(tmp_path / f"errors-{name}")}
        result = run_python(CAPTURE, backend / "libbackend.so", plain=name == "plain", env=env)
        assert not (tmp_path / f"errors-{name}").exists(), (tmp_path / f"errors-{name}").read_text()
        said[name] = (result.status, result.stdout)
    assert said["plain"] == said["devsan"] == (0, "3 graphs\n")
    assert [f["kind"] for f in result.findings if f["kind"] == "async-race"] == []
