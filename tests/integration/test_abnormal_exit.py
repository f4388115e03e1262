"""Processes that do not end by themselves are findings, with what they did last; those that do are none."""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import time

import pytest

# Iterations at known lines, and an end.
PROGRAM = """
import multiprocessing, os, resource, signal, sys, time, torch
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
model = torch.nn.Linear(4, 4)
def iterate(count):
    for _ in range(count):
        loss = model(torch.ones(2, 4)).sum()
        loss.backward()
        last = loss.detach() * 2  # the last operator
iterate(5)
{end}
"""
LAST_LINE = 9


def program(end):
    return PROGRAM.format(end=end)


def abnormal(run):
    return [f for f in run.findings if f["kind"] == "abnormal-exit"]


@pytest.mark.parametrize("name", ["SIGKILL", "SIGSEGV", "SIGABRT", "SIGBUS"])
def test_a_process_that_a_signal_tore_down_is_a_finding_at_its_last_operator(run_python, name):
    run = run_python(program(f"os.kill(os.getpid(), signal.{name})"))
    assert run.status == 128 + getattr(signal, name)
    [finding] = abnormal(run)
    assert finding["severity"] == "error"
    assert finding["ending"]["signal"] == name and finding["ending"]["status"] is None
    assert finding["op"].startswith("aten::mul") and finding["where"]["line"] == LAST_LINE
    assert finding["step"] == 4
    assert f"was ended by {name}" in run.stderr
    assert "kernel" not in run.stderr


def test_killed_behind_an_operator_of_a_library_it_is_at_the_programs_own_last_line(run_python):
    end = "torch.optim.SGD(model.parameters(), 0.1, foreach=False).step()\nos.kill(os.getpid(), signal.SIGKILL)"
    run = run_python(program(end))
    [finding] = abnormal(run)
    assert (pathlib.Path(finding["where"]["file"]).parent, finding["where"]["line"]) == (run.out.parent, LAST_LINE)
    [thread] = [t for t in run.report["run"]["processes"][0]["threads"] if t["last"]]
    assert thread["last"][0]["file"].endswith("sgd.py")


def test_killed_at_its_memory_peak_the_report_shows_the_curve(run_python, devsan):
    leak = "kept = []\nfor step in range(30):\n    kept.append(torch.ones(1 << 18)); iterate(1); time.sleep(0.021)\n"
    run = run_python(program(leak + "os.kill(os.getpid(), 9)"))
    [finding] = abnormal(run)
    assert finding["where"]["line"] == LAST_LINE
    [process] = run.report["run"]["processes"]
    used = [point["used"] for point in process["memory"][0]["points"]]
    assert used[-1] - used[0] > 20 << 20 and process["memory"][0]["peak"]["used"] == max(used)
    shown = subprocess.run([devsan, "view", run.out], capture_output=True, text=True, check=True).stdout
    assert "Its memory until then" in shown and "The last operators, newest first" in shown


def test_os_exit_with_a_status_is_told_from_a_kill(run_python):
    run = run_python(program("os._exit(3)"))
    assert run.status == 3
    [finding] = abnormal(run)
    assert finding["severity"] == "warning"
    assert finding["ending"] == {"signal": None, "status": 3, "oom_kills": finding["ending"]["oom_kills"],
                                 "named_by_kernel": False, "hint": None}


def test_the_file_alone_tells_a_kill_from_os_exit(run_python):
    """Without `devsan run` nobody is told how the process ended."""
    killed = run_python(program("os.kill(os.getpid(), 9)"), preload=True)
    [finding] = abnormal(killed)
    assert finding["severity"] == "warning" and finding["ending"]["signal"] is None
    assert finding["where"]["line"] == LAST_LINE
    [left] = abnormal(run_python(program("os._exit(3)"), preload=True))
    assert (left["ending"]["signal"], left["ending"]["status"]) == (None, 3)
    assert abnormal(run_python(program("os._exit(0)"), preload=True)) == []


# What Gloo's threads do to a process whose interpreter frees the tensors that they hold.
ABORTS_AT_THE_END = """
import tempfile, torch.distributed as dist
class Thread:
    def __del__(self):
        os.abort()
dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
dist.all_reduce(torch.ones(4))
thread = Thread()
"""


@pytest.mark.parametrize("end, hinted", [
    ("pass", True),
    ("dist.destroy_process_group()", False),
    ("os.abort()", False),  # before the program's end
    ("os.kill(os.getpid(), signal.SIGKILL)", False),
])
def test_an_abort_behind_the_programs_end_names_the_call_that_groups_miss(run_python, devsan, end, hinted):
    run = run_python(program(ABORTS_AT_THE_END + end))
    [finding] = abnormal(run)
    assert finding["ending"]["signal"] == ("SIGKILL" if "SIGKILL" in end else "SIGABRT")
    hint = finding["ending"]["hint"]
    assert (hint is not None and "1 process group was still there" in hint) == hinted
    for option in ([], ["--markdown"]):
        shown = subprocess.run([devsan, "view", run.out, *option], capture_output=True, text=True, check=True).stdout
        assert ("torch.distributed.destroy_process_group()" in shown) == hinted


@pytest.mark.parametrize("end", [
    "pass", "sys.exit(3)", "raise SystemExit", "raise ValueError", "os._exit(0)", "os.kill(os.getpid(), signal.SIGTERM)",
    "os.kill(os.getpid(), signal.SIGINT)", "os.execv('/bin/true', ['true'])",
    "os.execv('/bin/sh', ['sh', '-c', 'kill -9 $$'])"])
def test_other_ends_are_no_findings(run_python, end):
    assert abnormal(run_python(program(end))) == []


def test_a_worker_that_is_killed_is_a_finding_through_its_parent(run_python):
    work = """
def work():
    iterate(3)
    os.kill(os.getpid(), signal.SIGKILL)
for method in ("fork", "spawn"):
    if __name__ == "__main__":
        child = multiprocessing.get_context(method).Process(target=work)
        child.start()
        child.join()
        print(child.exitcode)
"""
    run = run_python(program(work))
    assert run.status == 0 and run.stdout.split() == ["-9", "-9"]
    findings = abnormal(run)
    assert sum(f["count"] for f in findings) == 2
    assert all(f["ending"]["signal"] == "SIGKILL" and f["severity"] == "error" for f in findings)
    assert all(f["where"]["line"] == LAST_LINE for f in findings)


def test_workers_in_good_order_are_no_findings(run_python):
    """Of a DataLoader, that are stopped early, that fail with a status, and that are terminated as daemons."""
    work = """
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, i): return torch.ones(3) * i
def fail():
    iterate(1)
    sys.exit(4)
def sleep():
    iterate(1)
    time.sleep(100)
if __name__ == "__main__":
    for keep in (False, True):
        loader = torch.utils.data.DataLoader(Data(), batch_size=4, num_workers=2, persistent_workers=keep)
        for batch in loader: pass
        next(iter(loader))
    child = multiprocessing.Process(target=fail)
    child.start()
    child.join()
    multiprocessing.Process(target=sleep, daemon=True).start()
    time.sleep(0.5)
"""
    run = run_python(program(work))
    assert run.status == 0, run.stderr
    assert abnormal(run) == []


def test_a_suppression_silences_it(run_python, tmp_path):
    rules = tmp_path / "rules"
    rules.write_text("abnormal-exit\n")
    run = run_python(program("os.kill(os.getpid(), 9)"), options=["--suppressions", str(rules)])
    assert abnormal(run) == []
    assert [f["kind"] for f in run.report["suppressed"]] == ["abnormal-exit"]


def test_a_program_that_waits_for_many_children_hears_what_it_heard(run_python):
    """All ways of waiting, with and without a place for the status."""
    work = """
def child(end):
    pid = os.fork()
    if pid == 0:
        end()
    return pid
kill = lambda: os.kill(os.getpid(), 9)
leave = lambda: os._exit(5)
for end in (kill, leave):
    print(os.waitpid(child(end), 0)[1])
    child(end); print(os.wait()[1])
    child(end); print(os.wait3(0)[1])
    print(os.wait4(child(end), 0)[1])
    pid = child(end)
    for options in (os.WEXITED | os.WNOWAIT, os.WEXITED):
        told = os.waitid(os.P_PID, pid, options)
        print(told.si_code, told.si_status)
try:
    os.waitpid(-1, 0)
except ChildProcessError as error:
    print(error.errno)
"""
    plain = run_python(program(work), plain=True)
    run = run_python(program(work))
    assert run.status == 0, run.stderr
    assert run.stdout.split() == ["9"] * 4 + ["2", "9"] * 2 + [str(5 << 8)] * 4 + ["1", "5"] * 2 + ["10"]
    assert (plain.status, plain.stdout) == (run.status, run.stdout)


# Rank 0 waits in a collective for rank 1, which never comes; then both are killed.
HUNG_RANK = """
import os, sys, threading, time, torch, torch.distributed as dist
dist.init_process_group("gloo", rank=int(sys.argv[1]), world_size=2, init_method="file://" + sys.argv[2])
values = torch.ones(4)
for step in range(3):
    doubled = values * 2
    dist.all_reduce(doubled)  # line 7
threading.Timer(1.5, os.kill, (os.getpid(), 9)).start()
if sys.argv[1] == "1":
    dist.barrier()  # line 10
    time.sleep(1000)
dist.barrier()  # line 12
dist.all_reduce(values)  # line 13
"""


def test_ranks_that_are_killed_in_a_hang_tell_the_collectives_that_they_came_to(run_python, tmp_path):
    script = tmp_path / "hung.py"
    script.write_text(HUNG_RANK)
    store = str(tmp_path / "store")
    with concurrent.futures.ThreadPoolExecutor() as ranks:
        runs = list(ranks.map(lambda rank: run_python(script, rank, store, out=tmp_path / f"out{rank}"), "01"))
    last = []
    for run in runs:
        assert run.status == 128 + 9, run.stderr
        assert len(abnormal(run)) == 1
        [process] = run.report["run"]["processes"]
        [thread] = [one for one in process["threads"] if one["last"]]
        last.append([(one["op"], one["line"]) for one in thread["last"]])
    assert last[0][:2] == [("c10d::allreduce_", 13), ("c10d::barrier", 12)]
    assert last[1][0] == ("c10d::barrier", 10)
    assert ("c10d::allreduce_", 7) in last[0] and ("c10d::allreduce_", 7) in last[1]


# In a control group of its own the run's group counts nothing: the kernel's log alone tells.
GROW_IN_GROUP = """
import sys
def grow(group=sys.argv[1]):
    iterate(3)
    with open(group + "/cgroup.procs", "w") as procs:
        procs.write(str(os.getpid()))
    kept = []
    while True:
        kept.append(b"x" * (8 << 20))
"""


@pytest.fixture
def small_group():
    """The folder of a control group of the first or second version that may have 64 MiB more than nothing."""
    folder = next((root for root in ("/sys/fs/cgroup/memory", "/sys/fs/cgroup") if os.access(root, os.W_OK)), None)
    log = os.access("/dev/kmsg", os.R_OK) and os.readlink("/proc/self/ns/pid") == "pid:[4026531836]"
    if folder is None or not log:
        pytest.skip("control groups cannot be made here, or the kernel's log not be read")
    group = pathlib.Path(folder) / f"devsan-test-{os.getpid()}"
    try:
        group.mkdir()
        limit = next((group / name for name in ("memory.limit_in_bytes", "memory.max") if (group / name).exists()), None)
        if limit is None:
            group.rmdir()
            pytest.skip("control groups have no limit of memory here")
        limit.write_text(str(64 << 20))
    except OSError as error:
        pytest.skip(f"control groups cannot be made here: {error}")
    yield group
    for _ in range(100):  # a killed process leaves its group when somebody has waited for it
        try:
            return group.rmdir()
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"{group} still has processes: {(group / 'cgroup.procs').read_text()}")


def test_the_kernels_log_tells_that_the_program_was_killed_for_memory(run_python, small_group):
    run = run_python(program(GROW_IN_GROUP + "grow()"), str(small_group))
    assert run.status == 128 + 9, run.stderr
    [finding] = abnormal(run)
    assert finding["ending"]["signal"] == "SIGKILL" and finding["ending"]["named_by_kernel"] is True
    assert "was killed by the kernel for memory" in run.stderr


def test_the_kernels_log_tells_of_a_worker_whose_parent_does_not_wait(run_python, small_group):
    leave = "if os.fork() == 0:\n    grow()\ntime.sleep(5)\nos.kill(os.getpid(), signal.SIGKILL)"
    run = run_python(program(GROW_IN_GROUP + leave), str(small_group))
    endings = {finding["pid"]: finding["ending"] for finding in abnormal(run)}
    assert sorted(ending["named_by_kernel"] for ending in endings.values()) == [False, True]
    assert all(ending["signal"] == "SIGKILL" for ending in endings.values())
    assert run.stderr.count("was killed by the kernel for memory") == 1
