"""Threads that come and go, thread pools, and children forked among them."""

import os

import pytest

from harness import view
from hooks_programs import found_at, line_of, steps_of

SHORT_THREADS = """\
import resource, threading
import torch

torch.set_num_threads(1)


def work():
    (torch.ones(3) + 1).sum()


def run(count):
    for _ in range(count // 20):
        threads = [threading.Thread(target=work) for _ in range(20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


run(400)
before = resident()
run(2000)
print((resident() - before) // 2**20)


def late():
    try:
        torch.ones(3, device="meta") + torch.ones(3)  # @late
    except RuntimeError:
        pass


thread = threading.Thread(target=late, name="late")
thread.start()
thread.join()
"""


def test_thousands_of_short_threads_take_no_more_and_more_memory(run_python):
    result = run_python(SHORT_THREADS)
    assert result.status == 0, result.stderr
    assert int(result.stdout) <= 16
    assert found_at(result, SHORT_THREADS, "late")["count"] == 1


POOL = """\
import concurrent.futures
import torch


def work(k):
    try:
        return (torch.ones(3, device="meta") + torch.ones(k)).sum()  # @pool
    except RuntimeError as error:
        return str(error)


with concurrent.futures.ThreadPoolExecutor(8) as pool:
    answers = set(pool.map(work, [3] * 500))
print(len(answers))
"""


def test_every_failure_of_a_thread_pool_is_counted(run_python):
    result = run_python(POOL)
    assert (result.status, result.stdout) == (0, "1\n"), result.stderr
    line = line_of(POOL, "pool")
    assert sum(f["count"] for f in result.raised() if f["where"]["line"] == line) == 500


MANY_LIVE = """\
import threading
import torch

torch.set_num_threads(1)
ready = threading.Barrier(401)
go = threading.Event()


def work(k):
    made = torch.ones(3) + k
    ready.wait()
    go.wait()
    try:
        torch.ones(3, device="meta") + made  # @raise
    except RuntimeError:
        pass


threads = [threading.Thread(target=work, args=(k,)) for k in range(400)]
for thread in threads:
    thread.start()
ready.wait()
go.set()
for thread in threads:
    thread.join()
"""


def test_failures_in_more_threads_than_have_caches_are_all_counted(run_python):
    result = run_python(MANY_LIVE)
    assert result.status == 0, result.stderr
    line = line_of(MANY_LIVE, "raise")
    assert sum(f["count"] for f in result.raised() if f["where"]["line"] == line) == 400


FORKS = """\
import os, threading, warnings
import torch

warnings.simplefilter("ignore")
torch.set_num_threads(1)
made = torch.ones(3)  # @made
stop = False
try:  # loads what torch needs to refuse this, which thirty children would do one by one
    torch.ones(3, device="meta") + made
except RuntimeError:
    pass


def busy():
    k = 0
    while not stop:
        k += 1
        value = eval(compile("torch.ones(3) * 2 + 1", f"/file{k}.py", "eval"))


threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
children = []
for child in range(30):
    pid = os.fork()
    if pid == 0:
        try:
            torch.ones(3, device="meta") + made  # @child
        except RuntimeError:
            os._exit(0)
        os._exit(1)
    children.append(pid)
    (torch.ones(3) + 1).sum()
stop = True
for thread in threads:
    thread.join()
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children] == [0] * 30)
"""


def test_children_forked_while_threads_run_operators_find_names_and_origins_from_before(run_python, devsan):
    result = run_python(FORKS)
    assert (result.status, result.stdout) == (0, "True\n"), result.stderr
    files = sorted(result.out.glob("*.devsan"))
    assert len(files) == 31
    with_finding = 0
    for file in files:
        line = line_of(FORKS, "child")
        findings = [f for f in view(devsan, file)["findings"] if f["raised"] and f["where"]["line"] == line]
        with_finding += len(findings)
        for finding in findings:
            [operand] = [one for one in finding["operands"] if one["device"] == "cpu"]
            assert operand["name"] == "made"
            assert steps_of(operand) == [(line_of(FORKS, "made"), "created")]
    assert with_finding == 30


LARGE_PAGE = """\
import torch

torch.ones(3) + 1
with open("/proc/self/smaps") as file:
    for line in file:
        field, _, rest = line.partition(":")
        if " " in field:  # "7f2b40000000-7f2b40200000 rw-p 00000000 00"
            begin, end = (int(part, 16) for part in field.split()[0].split("-"))
        elif field == "VmFlags" and "hg" in rest.split() and begin % 2**21 == 0:
            print(end - begin)
"""


@pytest.mark.skipif(not os.path.exists("/sys/kernel/mm/transparent_hugepage"), reason="a kernel without large pages")
def test_the_tables_that_every_operator_touches_ask_for_one_large_page(run_python):
    result = run_python(LARGE_PAGE)
    assert result.status == 0, result.stderr
    assert result.stdout.split() == [str(2**21)]
