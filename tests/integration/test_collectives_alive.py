"""Collectives by each way that there is to them, in one process; and `--hang-after`, which looks at a job that still runs."""

import json
import subprocess
import textwrap
import time

import jsonschema
import pytest

from harness import ROOT, Runner, need_simulated_devices, view

# Gloo's threads may still hold tensors when the interpreter ends, and then abort the process, with devsan or without it
# (pytorch/pytorch#179291): all programs here destroy their groups before.
ONE_RANK = """
    import atexit, os, sys, tempfile, torch
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
    atexit.register(dist.destroy_process_group)
    values = torch.ones(4)
"""


def collectives_of(run):
    """Of the process that entered some, oldest first."""
    [process] = [p for p in run.report["run"]["processes"] if "collectives" in p]
    return list(reversed(process["collectives"]["last"]))


def run_one_rank(run_python, program):
    run = run_python(textwrap.dedent(ONE_RANK) + textwrap.dedent(program), start=True)
    assert run.status == 0, run.stderr
    return run


def test_asynchronous_functional_and_ddp_collectives_are_recorded_to_their_end(run_python):
    run = run_one_rank(run_python, """
        import torch.distributed._functional_collectives as functional
        work = dist.all_reduce(values, async_op=True)
        work.wait()
        total = functional.all_reduce(values, "sum", dist.group.WORLD) + 1
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4))
        model(values).sum().backward()
        dist.barrier()
    """)
    told = collectives_of(run)
    reduced = [call for call in told if call["name"] == "all_reduce"]
    assert len(reduced) == 3
    # DDP waits for a future, which Gloo completes before it finishes the work itself.
    open_ones = [(call["name"], call["sequence"]) for call in told if call["state"] != "finished"]
    assert open_ones in ([], [("all_reduce", reduced[2]["sequence"])])
    lines = [call["where"]["line"] for call in reduced]
    # Asynchronous, functional, and in the backward two lines below.
    assert lines == [lines[0], lines[0] + 2, lines[0] + 4]
    assert told[-1]["name"] == "barrier"
    assert [call["sequence"] for call in told] == list(range(1, len(told) + 1))


def test_a_collective_that_nobody_waits_for_is_recorded_to_its_end(run_python):
    run = run_one_rank(run_python, """
        import time
        work = dist.all_reduce(values, async_op=True)
        while not work.is_completed():
            time.sleep(0.01)
        time.sleep(0.1)
    """)
    assert [call["state"] for call in collectives_of(run)] == ["finished"]


def test_what_ddp_reduces_on_a_thread_of_autograds_engine_is_told_at_the_line_of_the_backward(run_python, python):
    need_simulated_devices(python)
    run = run_python("""
        import sys, tempfile, torch
        import torch.distributed as dist
        dist.init_process_group("nccl", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
        model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 4).to("cuda:0"))
        loss = model(torch.ones(4, device="cuda:0")).sum()
        print(sys._getframe().f_lineno + 1)
        loss.backward()
        dist.destroy_process_group()
    """, sim=1, start=True)
    assert run.status == 0, run.stderr
    reduced = [call for call in collectives_of(run) if call["name"] == "all_reduce"]
    assert reduced and {call["where"]["line"] for call in reduced} == {int(run.stdout)}


def test_groups_of_one_name_made_one_after_the_other_count_anew(run_python):
    run = run_one_rank(run_python, """
        dist.all_reduce(values)
        dist.all_reduce(values)
        dist.destroy_process_group()
        dist.init_process_group("gloo", init_method="file://" + tempfile.mktemp(), rank=0, world_size=1)
        dist.all_reduce(values)
    """)
    assert [call["sequence"] for call in collectives_of(run)] == [1, 2, 1]


def test_a_collective_that_raises_is_told_as_failed_and_the_next_one_is_recorded(run_python):
    run = run_one_rank(run_python, """
        try:
            dist.group.WORLD.allreduce([torch.ones(2), torch.ones(3)])
        except (RuntimeError, ValueError):
            pass
        dist.all_reduce(values)
    """)
    assert [call["state"] for call in collectives_of(run)] == ["failed", "finished"]


TWO_RANKS = """
import os, pathlib, subprocess, sys, time, torch
import torch.distributed as dist
if len(sys.argv) == 1:
    children = [subprocess.Popen([sys.executable, __file__, str(rank)]) for rank in range(2)]
    sys.exit(max(child.wait() for child in children))
rank = int(sys.argv[1])
dist.init_process_group("gloo", init_method="file://STORE", rank=rank, world_size=2)
values = torch.ones(4)
dist.all_reduce(values)
def busy():
    while not pathlib.Path("GO").exists():  # BUSY
        time.sleep(0.05)
if rank == 1:
    busy()
dist.all_reduce(values)  # WAIT
os.write(1, f"{values.tolist()}\\n".encode())  # at once: both ranks write here
dist.destroy_process_group()
"""


@pytest.fixture
def hanging(devsan, python, tmp_path):
    """A job of two ranks, of which one waits for the file `go` before it enters the second collective."""
    program = tmp_path / "job.py"
    program.write_text(TWO_RANKS.replace("STORE", str(tmp_path / "store")).replace("GO", str(tmp_path / "go")))
    env = Runner(devsan, python, tmp_path).environment()
    command = [devsan, "run", "--hang-after", "1", "--out", tmp_path / "out", "--", python, program]
    job = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    yield job, program
    (tmp_path / "go").touch()
    job.communicate(timeout=120)


def line_of(program, mark):
    return next(n for n, text in enumerate(program.read_text().splitlines(), 1) if text.endswith(f"# {mark}"))


def hang_of(devsan, out, deadline):
    """What `devsan view` tells of the live job, as soon as both ranks have said where they are."""
    while time.monotonic() < deadline:
        if (out / "waiting").exists():
            [*hangs] = [f for f in view(devsan, out)["findings"] if f["kind"] == "collective-hang"]
            if hangs and all("threads" in turn for turn in hangs[0]["collective"]["per_rank"]):
                return hangs[0]
        time.sleep(0.5)
    pytest.fail("no report of the job that hangs")


def test_a_job_that_hangs_tells_where_each_rank_is_and_goes_on(hanging, devsan, tmp_path):
    job, program = hanging
    hang = hang_of(devsan, tmp_path / "out", time.monotonic() + 150)
    assert hang["ranks"] == [1] and not hang.get("other_ranks")
    by_rank = {turn["rank"]: turn for turn in hang["collective"]["per_rank"]}
    assert by_rank[0]["state"] == "waiting" and by_rank[0]["where"]["line"] == line_of(program, "WAIT")
    assert by_rank[1]["state"] == "never_entered"
    main = by_rank[1]["threads"][0]
    assert main["name"] == "MainThread" and main["tid"] > 0
    assert [frame["function"] for frame in main["stack"] if frame["file"] == str(program)] == ["busy", "<module>"]
    assert any(frame["line"] == line_of(program, "WAIT") for frame in by_rank[0]["threads"][0]["stack"])
    assert (tmp_path / "out/waiting").stat().st_mode & 0o777 == 0o600

    (tmp_path / "go").touch()
    out, _ = job.communicate(timeout=120)
    assert job.returncode == 0 and out.splitlines() == ["[4.0, 4.0, 4.0, 4.0]"] * 2
    report = view(devsan, tmp_path / "out")
    findings = report["findings"]
    assert not [f for f in findings if f["severity"] != "note"], findings
    [slow] = [f for f in findings if f["kind"] == "collective-slow"]
    assert (slow["severity"], slow["ranks"], slow["where"]["function"]) == ("note", [1], "busy")
    by_rank = {turn["rank"]: turn for turn in slow["collective"]["per_rank"]}
    assert by_rank[0]["state"] == "waiting" and by_rank[0]["where"]["line"] == line_of(program, "WAIT")
    assert by_rank[1]["state"] == "late" and by_rank[1]["what"].startswith("entered it ")
    assert [frame["function"] for frame in by_rank[1]["threads"][0]["stack"]
            if frame["file"] == str(program)] == ["busy", "<module>"]
    assert slow["collective"]["waited_ns"] >= 1_000_000_000
    schema = json.loads((ROOT / "report/render/report.schema.json").read_text())
    jsonschema.validate(report, schema)
    for words in ((), ("--markdown",)):
        shown = subprocess.run([devsan, "view", tmp_path / "out", "--notes", *words], capture_output=True, text=True,
                               check=True).stdout
        text = " ".join(shown.split())
        assert "rank 1 kept rank 0 waiting for" in text and "rank 1 came late" in text and "in busy" in text
    hidden = subprocess.run([devsan, "view", tmp_path / "out"], capture_output=True, text=True, check=True).stdout
    assert "collective-slow" not in hidden and "no finding" in hidden


def test_without_the_option_the_process_has_no_thread_of_devsan(run_python):
    run = run_one_rank(run_python, """
        dist.all_reduce(values)
        names = [open(f"/proc/self/task/{task}/comm").read().strip() for task in os.listdir("/proc/self/task")]
        assert not [name for name in names if "devsan" in name], names
    """)
    assert collectives_of(run)


# What is registered before torch is imported runs after devsan's own handler. DESTROYS_FIRST: rank 1 destroys its group,
# which rank 0 feels, before it leaves word of its failure; rank 0 ends after it has.
TWO_RANKS_FAIL = """
    import atexit, pathlib, subprocess, sys, tempfile, time
    if len(sys.argv) == 1:
        store = tempfile.mktemp()
        children = [subprocess.Popen([sys.executable, __file__, str(rank), store]) for rank in range(2)]
        sys.exit(max(child.wait() for child in children))
    rank, store = int(sys.argv[1]), sys.argv[2]
    def leave():
        word = pathlib.Path(store + ".left")
        if rank == 1:
            word.touch()
        while not word.exists():
            time.sleep(0.01)
        if not DESTROYS_FIRST:
            dist.destroy_process_group()
    atexit.register(leave)
    import torch
    import torch.distributed as dist
    dist.init_process_group("gloo", init_method="file://" + store, rank=rank, world_size=2)
    if DESTROYS_FIRST:
        atexit.register(dist.destroy_process_group)
    dist.all_reduce(torch.ones(4))
    if rank == 1:
        raise ValueError("no more data")
    dist.all_reduce(torch.ones(4))
"""


@pytest.mark.parametrize("destroys_first", [False, True])
def test_rank_0_says_which_rank_failed_before_it_and_the_files_are_private(run_python, destroys_first):
    run = run_python(TWO_RANKS_FAIL.replace("DESTROYS_FIRST", str(destroys_first)), start=True)
    assert run.status == 1
    told = [line for line in run.stderr.splitlines() if line.startswith("devsan: rank 1 failed first")]
    assert len(told) == 1 and "it raised ValueError: no more data" in told[0]
    assert destroys_first or "before this rank" in told[0]
    notes = sorted(run.out.glob("failed.rank*"))
    assert [note.name.split(".")[1] for note in notes] == ["rank0", "rank1"]
    assert {note.stat().st_mode & 0o777 for note in notes} == {0o600}
    first = run.report["run"]["first_failure"]
    assert (first["rank"], first["what"]) == (1, "raised ValueError: no more data")
