"""Arrays of NumPy over pinned memory, made before an asynchronous copy of it: using them too early is a race, and no
use of them, early or not, changes what the program does."""

import textwrap

import pytest

EARLY = """
    import numpy
    import torch

    device = torch.device("cuda", 0)
    values = torch.arange(2048.0, device=device)
    host = torch.zeros(2048, pin_memory=True)
    array = host.numpy()

    def fetch():
        host.copy_(values, non_blocking=True)

    fetch()
    print(array.max())  # read
    fetch()
    array[3] = 1.0  # target written
    fetch()
    print(memoryview(array)[5])  # read by Python
    event = torch.cuda.Event()
    fetch()
    event.synchronize()
    print(array[7])  # waited for an event that was never recorded
    torch.cuda.synchronize()
    there = torch.empty(2048, device=device)
    there.copy_(host, non_blocking=True)
    print(array[9])  # source read
    array[:] = 2.0  # source written
    print(there.sum().item())
"""

WAITED = """
    import numpy
    import torch

    device = torch.device("cuda", 0)
    stream = torch.cuda.Stream()
    ring = torch.zeros(4, 1024, pin_memory=True)
    slots = ring.numpy()
    events = [torch.cuda.Event() for _ in range(4)]
    total = 0.0
    for step in range(12):
        slot = step % 4
        if step >= 4:
            events[slot].synchronize()
            total += slots[slot].sum()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            ring[slot].copy_(torch.full((1024,), float(step), device=device), non_blocking=True)
            events[slot].record()
    torch.cuda.synchronize()
    print(total, slots[:, 0])
    staging = torch.zeros(512, pin_memory=True)
    filled = staging.numpy()
    for step in range(3):
        filled[:] = step
        moved = staging.to(device, non_blocking=True)
        print(moved.sum().item(), filled[0])
    host = torch.zeros(16, pin_memory=True)
    seen = host.numpy()
    host.copy_(torch.ones(16, device=device), non_blocking=True)
    host.copy_(torch.full((16,), 2.0, device=device), non_blocking=True)
    torch.cuda.current_stream().synchronize()
    print(seen.sum())
    host.copy_(torch.ones(16, device=device), non_blocking=True)
    del host, seen, staging, filled
    print(torch.zeros(16, pin_memory=True).add_(1).sum())
"""


def lines_of(source, findings):
    lines = textwrap.dedent(source).splitlines()
    return [lines[f["where"]["line"] - 1].rpartition("# ")[2] for f in findings if f["kind"] == "async-race"]


def test_an_array_that_was_there_before_the_copy_is_a_race_where_it_is_used_too_early(run_python):
    result = run_python(EARLY, sim=1, options=["--quiet"])
    assert result.status == 0, result.stderr
    assert sorted(lines_of(EARLY, result.findings)) == sorted([
        "read", "target written", "read by Python", "waited for an event that was never recorded", "source written"])
    lines = textwrap.dedent(EARLY).splitlines()
    causes = {lines[f["root_cause"]["line"] - 1].strip() for f in result.findings if f["kind"] == "async-race"}
    assert causes == {"host.copy_(values, non_blocking=True)", "there.copy_(host, non_blocking=True)"}
    assert result.stdout.split() == ["2047.0", "5.0", "7.0", "9.0", str(2047.0 * 2048 / 2)]


def test_slots_that_are_waited_for_are_no_race_and_the_output_is_the_same(run_python):
    result = run_python(WAITED, sim=1, options=["--quiet"])
    assert result.status == 0, result.stderr
    assert result.loud() == []
    assert result.stdout.splitlines() == [
        "28672.0 [ 8.  9. 10. 11.]", "0.0 0.0", "512.0 1.0", "1024.0 2.0", "32.0", "tensor(16.)"]


@pytest.mark.parametrize("handler, when, seen", [
    ("import faulthandler; faulthandler.enable()", "at first", True),
    ("import faulthandler; faulthandler.enable()", "later", True),
    ("import signal; signal.signal(signal.SIGSEGV, lambda *_: print('called'))", "at first", True),
    ("import signal; signal.signal(signal.SIGSEGV, lambda *_: print('called'))", "later", False),
])
def test_the_programs_own_handler_of_faults_is_left_in_peace(run_python, handler, when, seen):
    source = f"""
    {handler if when == "at first" else "pass"}
    import torch

    values = torch.ones(64, device="cuda")
    host = torch.zeros(64, pin_memory=True)
    array = host.numpy()
    host.copy_(values, non_blocking=True)
    torch.cuda.synchronize()
    {handler if when == "later" else "pass"}
    host.copy_(values, non_blocking=True)
    print(array.sum())  # read
    """
    result = run_python(source, sim=1, options=["--quiet"])
    assert (result.status, result.stdout, result.stderr) == (0, "64.0\n", "")
    assert lines_of(source, result.findings) == (["read"] if seen else [])


def test_a_real_fault_ends_the_process_as_it_does_without(run_python):
    source = """
    import ctypes
    import torch

    host = torch.zeros(64, pin_memory=True)
    array = host.numpy()
    host.copy_(torch.ones(64, device="cuda"), non_blocking=True)
    print(array.sum(), flush=True)
    ctypes.string_at(8)
    """
    result = run_python(source, sim=1, options=["--quiet"])
    assert (result.status, result.stdout) == (128 + 11, "64.0\n")


def test_a_forked_child_may_use_what_a_copy_of_its_parent_is_at_work_on(run_python):
    source = """
    import os
    import torch

    host = torch.zeros(4096, pin_memory=True)
    array = host.numpy()
    host.copy_(torch.ones(4096, device="cuda"), non_blocking=True)
    read, write = os.pipe()
    if os.fork() == 0:
        os.write(write, memoryview(array)[:8])
        os._exit(0)
    print(len(os.read(read, 64)), os.wait()[1])
    torch.cuda.synchronize()
    print(array.sum())
    """
    result = run_python(source, sim=1, options=["--quiet"])
    assert (result.status, result.stdout, result.stderr) == (0, "32 0\n4096.0\n", "")
    assert result.loud() == []


def test_copies_in_order_into_one_large_array_are_no_race_on_any_number_of_threads(run_python):
    source = """
    import torch

    torch.set_num_threads(4)
    count = 1 << 22
    host = torch.zeros(count, pin_memory=True)
    array = host.numpy()
    for k in range(3):
        host.copy_(torch.full((count,), float(k), device="cuda"), non_blocking=True)
        host.copy_(torch.full((count,), float(k), device="cuda", dtype=torch.float64), non_blocking=True)
    torch.cuda.synchronize()
    print(array.sum() / count)
    """
    result = run_python(source, sim=1, options=["--quiet"])
    assert (result.status, result.stdout, result.stderr) == (0, "2.0\n", "")
    assert result.loud() == []


def test_threads_that_use_an_array_at_once_all_go_on(run_python):
    source = """
    import threading
    import torch

    host = torch.zeros(1 << 16, pin_memory=True)
    array = host.numpy()
    values = torch.ones(1 << 16, device="cuda")
    sums = []
    for _ in range(50):
        host.copy_(values, non_blocking=True)
        threads = [threading.Thread(target=lambda: sums.append(array.sum())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        torch.cuda.synchronize()
    print(len(sums), set(sums) == {65536.0})
    """
    result = run_python(source, sim=1, options=["--quiet"])
    assert (result.status, result.stdout, result.stderr) == (0, "200 True\n", "")
    assert [f["kind"] for f in result.loud()] == ["async-race"]


STAGED = """
    import torch

    device = torch.device("cuda", 0)
    first, second = torch.ones(2048), torch.zeros(2048)
    staging = torch.empty(2048, pin_memory=True)  # made
    there = torch.empty(2, 2048, device=device)
    staging.copy_(first)
    there[0].copy_(staging, non_blocking=True)
    staging.copy_(second)  # refilled
    torch.cuda.synchronize()

    def to_host(x, non_blocking=False):
        return x.to("cpu", non_blocking=non_blocking)

    rows = to_host(there[0], non_blocking=True)  # asked
    print(rows.numpy()[0])  # read
"""


def test_a_race_tells_where_the_memory_comes_from_and_who_asked_a_helper_not_to_wait(run_python):
    program = textwrap.dedent(STAGED)
    result = run_python(program, sim=1)
    assert result.status == 0, result.stderr
    lines = program.splitlines()
    races = {lines[f["where"]["line"] - 1].rpartition("# ")[2]: f for f in result.findings if f["kind"] == "async-race"}
    assert set(races) == {"refilled", "read"}
    assert [operand["arg"] for operand in races["refilled"]["operands"]] == ["self", "src"]
    staging = races["refilled"]["operands"][0]
    assert [lines[step["line"] - 1].rpartition("# ")[2] for step in staging["lineage"]] == ["made"]
    assert lines[races["read"]["root_cause"]["line"] - 1].endswith("# asked")
