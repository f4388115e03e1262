"""Ranks that the launcher ends because another one failed: told as that, in whichever way devsan came into them."""

import subprocess

import pytest

from harness import Runner, need_simulated_devices, view

# Rank 1 fails in the way that the argument names, and the other rank waits for it.
PROGRAM = """
import os, sys, time, torch, torch.distributed as dist
how = sys.argv[1]
dist.init_process_group("gloo")
values = torch.ones(4)

class Last:
    def __del__(self, sleep=time.sleep):
        sleep(60)

for turn in range(5):
    if turn == 3 and dist.get_rank() == 1:
        dist.destroy_process_group()  # Gloo's threads may abort a process that ends with them
        if how == "raises":
            raise ValueError("no more data")
        if how == "leaves now":
            os._exit(1)
        if how == "leaves slowly":
            last = Last()
        sys.exit("the config has no learning rate")
    try:
        dist.all_reduce(values)
    except RuntimeError:
        if how != "leaves slowly":
            time.sleep(60)  # the launcher is to see first that the other rank has left
        raise
dist.destroy_process_group()
"""


class Job:
    def __init__(self, devsan, python, scratch, how, by_logs_specs):
        program = scratch / "program.py"
        program.write_text(PROGRAM)
        self.out = scratch / ("logs-specs" if by_logs_specs else "run")
        launch = [python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        more = {"OMP_NUM_THREADS": "1"}
        if by_logs_specs:
            command = [*launch, "--logs-specs=devsan", program, how]
            more["DEVSAN_OPTIONS"] = f"out={self.out}"
        else:
            command = [devsan, "run", "--out", self.out, "--", *launch, program, how]
        env = Runner(devsan, python, scratch).environment(more)
        self.done = subprocess.run(list(map(str, command)), env=env, cwd=scratch, capture_output=True, text=True,
                                   timeout=180)
        self.report = view(devsan, self.out)
        self.shown = subprocess.run([devsan, "view", self.out], capture_output=True, text=True, check=True).stdout


def test_a_rank_that_the_launcher_ended_is_no_finding_by_devsan_run_and_by_logs_specs(devsan, python, tmp_path):
    runs = [Job(devsan, python, tmp_path, "raises", by_logs_specs) for by_logs_specs in (False, True)]
    for run in runs:
        assert run.done.returncode != 0
        assert run.report["findings"] == []
        assert "did not exit by itself" not in run.shown + run.done.stderr
        # It may have come to its own end before it was ended.
        ended = [p for p in run.report["run"]["processes"] if p["rank"] == 0 and p["close"] == "open"]
        assert [p["ended_after"] for p in ended] == [1] * len(ended)
        if ended:
            assert "rank 0 was ended" in run.shown and "after rank 1 had failed" in run.shown
        assert run.report["run"]["first_failure"]["rank"] == 1
    done = subprocess.run([devsan, "diff", runs[0].out, runs[1].out], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("how", ["leaves", "leaves now"])
@pytest.mark.parametrize("by_logs_specs", [False, True], ids=["run", "logs-specs"])
def test_a_rank_that_left_is_told_with_its_last_operator(devsan, python, tmp_path, by_logs_specs, how):
    run = Job(devsan, python, tmp_path, how, by_logs_specs)
    first = run.report["run"]["first_failure"]
    assert (first["rank"], first["what"]) == (1, "left with status 1")
    line = PROGRAM.splitlines().index("        dist.all_reduce(values)") + 1
    assert first["last_operator"]["line"] == line
    assert f"it left with status 1; its last operator was at program.py:{line}" in " ".join(run.shown.split())


def test_a_rank_that_is_ended_while_its_interpreter_ends_had_run_to_its_end(devsan, python, tmp_path):
    run = Job(devsan, python, tmp_path, "leaves slowly", by_logs_specs=False)
    first = run.report["run"]["first_failure"]
    assert first["missing"] == [1]
    turn = first["waiting"]["per_rank"][1]
    assert (turn["state"], turn["what"]) == ("gone", "had run to its end"), run.done.stderr
    told = "rank 1 never entered all_reduce 4, which rank 0 waited in: it had run to its end"
    assert told in " ".join(run.shown.split())


# A worker catches what its function raises, hands it to its parent, and leaves with status 1.
SPAWNS = """
import torch, torch.distributed as dist, torch.multiprocessing
def work(rank, store):
    dist.init_process_group("nccl", init_method=store, rank=rank, world_size=2)
    torch.cuda.set_device(rank)
    values, weights = torch.ones(4, device="cuda"), torch.ones(4, device="cuda" if rank == 0 else "cpu")
    dist.all_reduce(values)
    loss = values * weights
    dist.all_reduce(loss)
    dist.barrier()
    dist.destroy_process_group()
if __name__ == "__main__":
    import tempfile
    torch.multiprocessing.spawn(work, args=("file://" + tempfile.mktemp(),), nprocs=2)
"""


def test_a_spawned_rank_that_left_for_a_refused_operator_is_told_with_that(devsan, python, tmp_path):
    need_simulated_devices(python)
    program = tmp_path / "program.py"
    program.write_text(SPAWNS)
    command = [devsan, "run", "--sim", "2", "--out", tmp_path / "out", "--", python, program]
    env = Runner(devsan, python, tmp_path).environment({"OMP_NUM_THREADS": "1"})
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=180)
    first = view(devsan, tmp_path / "out")["run"]["first_failure"]
    assert (first["rank"], first["what"]) == (1, "was refused aten::mul.Tensor, then left with status 1"), done.stderr
    line = SPAWNS.splitlines().index("    loss = values * weights") + 1
    assert first["where"]["line"] == line and "last_operator" not in first
    what = "it was refused aten::mul.Tensor, then left with status 1"
    told = f"rank 1 failed first, in step 0: {what}, at program.py:{line}"
    assert told in " ".join(done.stderr.split())
