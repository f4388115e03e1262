"""Collectives of several ranks: what is recorded of them, and what is said of a job in which one rank goes wrong."""

import pathlib
import subprocess

import pytest

from harness import Runner, need_simulated_devices, view

PROGRAM = pathlib.Path(__file__).parent / "collective_programs/worker.py"
SOURCE = PROGRAM.read_text().splitlines()


def line_of(mark):
    [line] = [number for number, text in enumerate(SOURCE, 1) if text.endswith(f"# {mark}")]
    return line


class Job:
    """What three ranks under torchrun left behind."""

    def __init__(self, done, out, devsan):
        self.done = done
        self.out = out
        self.report = view(devsan, out)
        self.findings = self.report["findings"]
        self.first = self.report["run"]["first_failure"]

    def errors(self):
        return [f for f in self.findings if f["severity"] == "error"]

    def of_kind(self, kind):
        return [f for f in self.findings if f["kind"] == kind]

    def ranks(self):
        """The processes of the ranks, by rank."""
        processes = self.report["run"]["processes"]
        return {p["rank"]: p for p in processes if p["rank"] is not None and "collectives" in p}


def torchrun(devsan, python, scratch, ranks, options, *program):
    env = Runner(devsan, python, scratch).environment({"OMP_NUM_THREADS": "1"})
    command = [devsan, "run", *options, "--out", scratch / "out", "--", python, "-m", "torch.distributed.run",
               "--standalone", f"--nproc-per-node={ranks}", *program]
    done = subprocess.run(command, env=env, cwd=scratch, capture_output=True, text=True, timeout=300)
    return Job(done, scratch / "out", devsan)


@pytest.fixture(scope="module")
def run_job(devsan, python, tmp_path_factory):
    """Runs the worker once for each case and device."""
    jobs = {}

    def run(case, device):
        if device == "cuda":
            need_simulated_devices(python)
        if (case, device) not in jobs:
            scratch = tmp_path_factory.mktemp(f"{case}-{device}")
            sim = ["--sim", "3"] if device == "cuda" else []
            jobs[case, device] = torchrun(devsan, python, scratch, 3, sim, PROGRAM, case, device)
        return jobs[case, device]

    return run


def turns(collective):
    return {turn["rank"]: turn for turn in collective["per_rank"]}


DEVICES = pytest.mark.parametrize("device", ["cpu", "cuda"])


@DEVICES
def test_collectives_are_recorded_with_group_number_size_and_line(run_job, device):
    job = run_job("slow", device)
    assert job.done.returncode == 0, job.done.stderr
    ranks = job.ranks()
    assert sorted(ranks) == [0, 1, 2]
    for rank, process in ranks.items():
        collectives = process["collectives"]["last"]
        mine = [c for c in collectives if (c["where"] or {}).get("file") == str(PROGRAM)]
        everyone = [c for c in reversed(mine) if c["name"] == "all_reduce"]
        assert [c["sequence"] for c in everyone] == [1, 2, 3, 4]
        assert [c["where"]["line"] for c in everyone] == [line_of("ALL")] * 3 + [line_of("WAIT")]
        for collective in everyone:
            assert collective["group_ranks"] == [0, 1, 2]
            assert (collective["bytes"], collective["dtype"]) == (16, "float32")
            assert collective["device"].startswith(device)
            assert collective["state"] == "finished"
            assert collective["entered_ns"] <= collective["finished_ns"]
        pairs = [c for c in mine if c["name"] == "broadcast"]
        assert [c["sequence"] for c in pairs] == ([1] if rank < 2 else [])
        # Backends of the simulation keep no list of ranks.
        assert all(c["group_ranks"] == ([0, 1] if device == "cpu" else []) for c in pairs)
        assert all(c["end_told"] for c in mine)


@DEVICES
def test_a_slow_rank_is_no_error(run_job, device):
    job = run_job("slow", device)
    assert job.done.returncode == 0, job.done.stderr
    assert job.first is None
    assert not job.of_kind("collective-hang") and not job.of_kind("collective-mismatch") and not job.errors()


@DEVICES
def test_a_rank_that_never_enters_a_collective_is_named(run_job, device):
    job = run_job("missing", device)
    assert job.done.returncode != 0
    [hang] = job.of_kind("collective-hang")
    assert (hang["severity"], hang["ranks"], hang["where"]["file"]) == ("error", [2], str(PROGRAM))
    collective = hang["collective"]
    assert (collective["name"], collective["sequence"], collective["group_ranks"]) == ("all_reduce", 4, [0, 1, 2])
    by_rank = turns(collective)
    assert [by_rank[rank]["state"] for rank in range(3)] == ["waiting", "waiting", "never_entered"]
    assert [by_rank[rank]["where"]["line"] for rank in range(2)] == [line_of("WAIT")] * 2
    assert by_rank[2]["where"]["file"] == str(PROGRAM)
    assert job.first["rank"] in (0, 1) and job.first["finding"] == hang["id"]
    assert job.first["missing"] == [2]
    assert "rank 2 never entered all_reduce 4, which ranks 0, 1 waited in" in " ".join(job.done.stderr.split())
    assert not job.of_kind("collective-mismatch")


def test_a_send_that_nobody_waits_for_is_no_wait(run_job):
    job = run_job("sent", "cpu")
    [hang] = job.of_kind("collective-hang")
    assert (hang["ranks"], hang["collective"]["name"], hang["collective"]["sequence"]) == ([2], "all_reduce", 4)
    assert turns(hang["collective"])[2]["state"] == "never_entered"
    [send] = [c for c in job.ranks()[2]["collectives"]["last"] if c["name"] == "send"]
    assert not send["end_told"] and send["where"]["line"] == line_of("SEND")


@DEVICES
def test_another_collective_than_the_others_is_a_mismatch(run_job, device):
    job = run_job("order", device)
    assert job.done.returncode != 0
    [mismatch] = job.of_kind("collective-mismatch")
    assert (mismatch["severity"], mismatch["ranks"]) == ("error", [2])
    assert mismatch["where"]["line"] == line_of("OTHER")
    assert (mismatch["collective"]["name"], mismatch["collective"]["sequence"]) == ("all_reduce", 4)
    by_rank = turns(mismatch["collective"])
    assert by_rank[2]["state"] == "entered_other" and "broadcast" in by_rank[2]["what"]
    assert not job.of_kind("collective-hang")


@DEVICES
def test_another_size_than_the_others_is_a_mismatch(run_job, device):
    job = run_job("shape", device)
    assert job.done.returncode != 0
    [mismatch] = job.of_kind("collective-mismatch")
    assert mismatch["ranks"] == [2] and mismatch["where"]["line"] == line_of("WRONG")
    assert mismatch["collective"]["bytes"] == 16
    assert "28 bytes" in turns(mismatch["collective"])[2]["what"]


@DEVICES
def test_the_rank_that_raised_failed_first_and_the_others_waited_for_it(run_job, device):
    job = run_job("raised", device)
    assert job.done.returncode != 0
    assert (job.first["rank"], job.first["what"]) == (2, "raised ValueError: no more data")
    assert job.first["where"]["line"] == line_of("RAISE")
    waiting = job.first["waiting"]
    assert (waiting["name"], waiting["sequence"]) == ("all_reduce", 4)
    by_rank = turns(waiting)
    assert [by_rank[rank]["state"] for rank in range(3)] == ["waiting", "waiting", "gone"]
    assert {by_rank[rank]["where"]["line"] for rank in range(2)} == {line_of("WAIT")}
    assert not job.of_kind("collective-hang") and not job.of_kind("collective-mismatch")


def test_a_collective_that_fails_before_its_call_returns_has_failed(run_job):
    job = run_job("left", "cpu")
    for rank in (0, 1):
        mine = [c for c in job.ranks()[rank]["collectives"]["last"] if (c["where"] or {}).get("line") == line_of("AGAIN")]
        assert len(mine) > 10
        assert {c["state"] for c in mine} == {"failed"}


@DEVICES
def test_the_rank_that_was_killed_failed_first_and_the_others_waited_for_it(run_job, device):
    job = run_job("killed", device)
    assert job.done.returncode != 0
    assert (job.first["rank"], job.first["what"]) == (2, "was ended by SIGKILL")
    assert turns(job.first["waiting"])[2]["state"] == "gone"
    [end] = [f for f in job.of_kind("abnormal-exit") if f["rank"] == 2]
    assert job.first["finding"] == end["id"]
    assert not job.of_kind("collective-hang") and not job.of_kind("collective-mismatch")


def test_the_rank_that_crashed_in_a_collective_failed_first_though_the_others_lost_it_before_that_was_noticed(run_job):
    job = run_job("aborted", "cpu")
    assert job.done.returncode != 0
    assert (job.first["rank"], job.first["what"]) == (2, "was ended by SIGABRT")


@DEVICES
def test_the_terminal_leads_with_the_rank_that_failed_first(run_job, devsan, device):
    job = run_job("killed", device)
    shown = subprocess.run([devsan, "view", job.out], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[0].startswith("rank 2 failed first, in step 0: it was ended by SIGKILL")
    assert f"then waited in all_reduce 4, entered from worker.py:{line_of('WAIT')}" in " ".join(shown.split())
    assert "rank 2 failed first" in job.done.stderr


# FSDP keeps gradients on the CPU, and the norm of all of them is a collective on a tensor there.
OFFLOADING = """
import sys, torch, torch.distributed as dist
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
dist.init_process_group(sys.argv[1])
torch.cuda.set_device(dist.get_rank())
if sys.argv[2] == "library":
    model = torch.nn.Linear(4, 4)
    fully_shard(model, offload_policy=CPUOffloadPolicy())
    model(torch.ones(2, 4, device="cuda")).sum().backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).full_tensor()
else:
    dist.all_reduce(torch.ones(4))
dist.destroy_process_group()
"""


def offloading(devsan, python, scratch, backend, who):
    need_simulated_devices(python)
    program = scratch / "offloading.py"
    program.write_text(OFFLOADING)
    return torchrun(devsan, python, scratch, 2, ["--sim", "2"], program, backend, who)


def test_a_group_without_a_backend_for_what_a_library_offloads_is_the_line_to_change(devsan, python, tmp_path):
    [finding] = offloading(devsan, python, tmp_path, "cuda:nccl", "library").of_kind("device-mismatch")
    assert finding["message"] == "No backend type associated with device type cpu"
    assert finding["root_cause"]["source"] == "dist.init_process_group(sys.argv[1])"
    assert "in installed code, hands it one" in finding["root_cause"]["why"]
    assert "cpu:gloo,cuda:nccl" in finding["fix"]["text"] and finding["fix"]["line"] == finding["root_cause"]["line"]
    assert finding["alternatives"]


def test_the_change_that_is_advised_for_the_group_lets_the_program_run(devsan, python, tmp_path):
    job = offloading(devsan, python, tmp_path, "cpu:gloo,cuda:nccl", "library")
    assert job.done.returncode == 0, job.done.stderr
    assert not job.of_kind("device-mismatch")


def test_a_tensor_that_the_program_itself_hands_to_the_group_is_to_be_moved_first(devsan, python, tmp_path):
    [finding] = offloading(devsan, python, tmp_path, "cuda:nccl", "program").of_kind("device-mismatch")
    assert "dist.all_reduce(torch.ones(4))" in finding["where"]["source"]
    assert finding["root_cause"]["line"] == finding["where"]["line"]
    assert "cpu:gloo,cuda:nccl" in finding["alternatives"][-1]["fix"]["text"]
