"""The rank of a process whose environment says none when it starts: the process group tells it."""

import pytest

# Two processes that make one group, in which each learns its rank by `how`; each then meets operands on two devices.
PROGRAM = """
    import os, subprocess, sys, torch
    import torch.distributed as dist
    def join(rank):
        {how}
    if len(sys.argv) == 1:
        children = [subprocess.Popen([sys.executable, __file__, str(rank)]) for rank in range(2)]
        sys.exit(max(child.wait() for child in children))
    rank = int(sys.argv[1])
    join(rank)
    {groups}
    try:
        torch.ones(2) + torch.ones(2, device="cuda")
    except RuntimeError:
        pass
    {after}
    dist.barrier()
    dist.destroy_process_group()
"""
GIVEN = "dist.init_process_group('gloo', init_method='file://{store}', rank=rank, world_size=2)"
FROM_ENVIRONMENT = (
    "os.environ.update(RANK=str(rank), WORLD_SIZE='2', MASTER_ADDR='localhost', MASTER_PORT='0');"
    " dist.init_process_group('gloo', store=dist.FileStore('{store}', 2), rank=int(os.environ['RANK']), world_size=2)"
)


def run_ranks(run_python, tmp_path, how, groups="pass", after="pass"):
    run = run_python(PROGRAM.format(how=how.format(store=tmp_path / "store"), groups=groups, after=after), sim=1)
    assert run.status == 0, run.stderr
    return run


@pytest.mark.parametrize("how", [GIVEN, FROM_ENVIRONMENT])
def test_the_process_group_tells_the_rank(run_python, tmp_path, how):
    run = run_ranks(run_python, tmp_path, how)
    ranks = {process["pid"]: process["rank"] for process in run.report["run"]["processes"]}
    assert sorted(rank for rank in ranks.values() if rank is not None) == [0, 1]
    [finding] = run.findings
    assert finding["ranks"] == [0, 1]
    assert finding["rank"] == ranks[finding["pid"]]


def test_a_group_of_some_ranks_tells_nothing(run_python, tmp_path):
    groups = "alone = [dist.new_group([1]), dist.new_group([0])]; last = dist.new_group([1, 0])"
    run = run_ranks(run_python, tmp_path, GIVEN, groups)
    assert run.findings[0]["ranks"] == [0, 1]


def test_forked_children_have_the_rank_of_their_parent(run_python, tmp_path):
    after = "child = os.fork(); torch.ones(2) + 1; child or os._exit(0); os.waitpid(child, 0)"
    run = run_ranks(run_python, tmp_path, GIVEN, after=after)
    processes = run.report["run"]["processes"]
    of_pid = {process["pid"]: process for process in processes}
    children = [p for p in processes if p["parent_pid"] in of_pid and of_pid[p["parent_pid"]]["rank"] is not None]
    assert sorted(child["rank"] for child in children) == [0, 1]
    assert all(child["rank"] == of_pid[child["parent_pid"]]["rank"] for child in children)


def test_the_rank_that_the_environment_gives_stays(run_python, tmp_path):
    program = GIVEN.format(store=tmp_path / "store").replace("rank=rank, world_size=2", "rank=0, world_size=1")
    run = run_python(f"import torch, torch.distributed as dist; {program}; torch.ones(2) + 1", env={"RANK": "5"})
    assert [process["rank"] for process in run.report["run"]["processes"]] == [5]
