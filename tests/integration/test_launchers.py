"""Launchers that start the ranks of a job: the program goes on as without devsan, and each trace says which rank it is of,
which of its node, of how many, and on which node."""

import platform
import re
import subprocess

import pytest
import yaml

from harness import ROOT
from launchers import COUNTED, GROUP_PROGRAM, LONE_PROGRAM, TWO_RANKS, Launcher, free_port


@pytest.fixture
def launcher(devsan, python, tmp_path):
    return Launcher(devsan, python, tmp_path)


@pytest.mark.parametrize("how", ["torchrun", "python -m torch.distributed.run"])
def test_torchrun_starts_two_ranks(launcher, how):
    program = launcher.file("train.py", GROUP_PROGRAM)
    command = [launcher.python.parent / "torchrun"] if how == "torchrun" else [launcher.python, *how.split()[1:]]
    done = launcher.under_devsan(*command, "--standalone", "--nproc-per-node=2", program)
    assert done.status == 0 and set(done.stdout.splitlines()) == COUNTED, done.stderr
    assert done.ranks == TWO_RANKS
    assert done.report["run"]["hosts"] == [platform.node()] and done.report["findings"] == []


def test_torchrun_of_two_nodes_numbers_them(launcher):
    """Each node has a torchrun of its own, whose workers devsan is in."""
    program = launcher.file("train.py", GROUP_PROGRAM)
    where = ["--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    env = launcher.environment({"DEVSAN_OPTIONS": f"out={launcher.out}"})
    nodes = [subprocess.Popen([launcher.python, "-m", "torch.distributed.run", "--logs-specs=devsan",
                               f"--node-rank={node}", *where, program], env=env, cwd=launcher.folder,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for node in range(2)]
    outputs = [node.communicate(timeout=300)[0] for node in nodes]
    assert [node.returncode for node in nodes] == [0, 0], outputs
    processes = sorted(launcher.report()["run"]["processes"], key=lambda p: p["rank"])
    assert [(p["rank"], p["local_rank"], p["world_size"], p["node"]) for p in processes] == [(0, 0, 2, 0), (1, 0, 2, 1)]


def test_restarted_workers_are_attempts_of_one_run(launcher):
    program = launcher.file("train.py", """
        import os, sys
        import torch

        torch.ones(2).sum()
        sys.exit(0 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else 3)
        """)
    done = launcher.under_devsan(launcher.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1",
                                 "--max-restarts=1", program)
    assert done.status == 0, done.stderr
    processes = sorted((p for p in done.report["run"]["processes"] if p["rank"] is not None), key=lambda p: p["attempt"])
    assert [(p["rank"], p["attempt"]) for p in processes] == [(0, 0), (0, 1)]
    assert len({p["run"] for p in processes}) == 1


def logs_of(folder):
    """What torchrun wrote below its directory of logs, without the names of the run and its attempts."""
    return {re.sub(r".*(?=attempt_)", "", str(path.relative_to(folder))): sorted(path.read_text().splitlines())
            for path in folder.rglob("*") if path.is_file() and path.stat().st_size}


@pytest.mark.parametrize("options", [["--redirects=3"], ["--tee=3", "--local-ranks-filter=1"], ["-r", "0:1", "-t", "1:3"]])
def test_logs_of_torchrun_are_what_they_are_without_devsan(launcher, options):
    program = launcher.file("train.py", """
        import os, sys
        import torch

        print("out of", os.environ["RANK"], int(torch.ones(2).sum()), flush=True)
        print("err of", os.environ["RANK"], file=sys.stderr, flush=True)
        """)
    seen = {}
    for name, flags in {"plain": [], "traced": ["--logs-specs=devsan"]}.items():
        folder = launcher.folder / name
        done = launcher.run(launcher.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                            f"--log-dir={folder}", *options, *flags, program,
                            env={"DEVSAN_OPTIONS": f"out={launcher.out}"})
        assert done.status == 0, done.stderr
        told = [line for line in (done.stdout + done.stderr).splitlines() if " of " in line]
        seen[name] = (logs_of(folder), sorted(told))
    assert seen["traced"] == seen["plain"] and any(seen["plain"])
    assert done.ranks == TWO_RANKS


def test_tasks_of_srun_are_ranks(launcher):
    """The program finds its rank in Slurm's variables, as those of torch are not set."""
    program = launcher.file("train.py", """
        import os
        import torch
        import torch.distributed as dist

        task = int(os.environ["SLURM_PROCID"])
        store = dist.FileStore("store", 4)
        dist.init_process_group("gloo", store=store, rank=task, world_size=int(os.environ["SLURM_NTASKS"]))
        dist.all_reduce(torch.ones(1))
        dist.destroy_process_group()
        """)
    done = launcher.run("srun", "--ntasks=4", "--nodes=2", launcher.devsan, "run", "--out", launcher.out, "--",
                        launcher.python, program)
    assert done.status == 0, done.stderr
    assert done.ranks == [(0, 0, 4, 0), (1, 1, 4, 0), (2, 0, 4, 1), (3, 1, 4, 1)]
    assert done.report["run"]["other_runs"] == 0


def test_ranks_that_a_task_of_srun_starts_are_those_of_the_group(launcher):
    program = launcher.file("train.py", """
        import os
        import torch
        import torch.distributed as dist
        import torch.multiprocessing as mp

        def work(local, task):
            dist.init_process_group("gloo", store=dist.FileStore("store", 4), rank=2 * task + local, world_size=4)
            dist.all_reduce(torch.ones(1))
            dist.destroy_process_group()

        if __name__ == "__main__":
            mp.spawn(work, (int(os.environ["SLURM_PROCID"]),), nprocs=2)
        """)
    done = launcher.run("srun", "--ntasks=2", "--nodes=2", launcher.devsan, "run", "--out", launcher.out, "--",
                        launcher.python, program)
    assert done.status == 0, done.stderr
    of_group = [rank for rank in done.ranks if rank[2] == 4]
    assert [(rank, size, node) for rank, _, size, node in of_group] == [(0, 4, 0), (1, 4, 0), (2, 4, 1), (3, 4, 1)]
    assert of_group[1][1] is None and of_group[3][1] is None, "the number of the task on its node is not theirs"


@pytest.mark.parametrize("kind", ["openmpi", "mvapich", "hydra"])
def test_processes_of_mpirun_are_ranks(launcher, kind):
    program = launcher.file("train.py", LONE_PROGRAM)
    done = launcher.under_devsan("mpirun", "--like", kind, "-n", "2", launcher.python, program)
    assert (done.status, done.stdout) == (0, "2\n2\n"), done.stderr
    assert done.ranks == [(0, 0, 2, None), (1, 1, 2, None)]


def test_pod_of_a_manifest_is_traced_as_the_rank_that_its_operator_gives_it(launcher):
    """The variables of docs/examples/kubernetes.yaml, and those that the operators of PyTorchJob and JobSet add."""
    spec = yaml.safe_load((ROOT / "docs/examples/kubernetes.yaml").read_text())["spec"]["template"]["spec"]
    said = {entry["name"]: entry["value"] for entry in spec["containers"][0]["env"]}
    said["LD_PRELOAD"] = said["LD_PRELOAD"].replace("/opt/devsan/lib/devsan/libdevsan.so", launcher.library)
    said["DEVSAN_OPTIONS"] = said["DEVSAN_OPTIONS"].replace("/traces", str(launcher.out))
    pod = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "train-master-0", "MASTER_PORT": "23456",
           "PET_NODE_RANK": "1", "PET_NNODES": "2", "JOB_COMPLETION_INDEX": "1"}
    done = launcher.run(launcher.python, launcher.file("train.py", LONE_PROGRAM), env={**said, **pod})
    assert (done.status, done.stdout) == (0, "2\n"), done.stderr
    assert done.ranks == [(1, None, 2, 1)]


def test_torchrun_in_a_pod_numbers_nodes_by_its_variables(launcher):
    program = launcher.file("train.py", LONE_PROGRAM)
    env = {"LD_PRELOAD": launcher.library, "DEVSAN_OPTIONS": f"out={launcher.out}", "PET_NNODES": "1",
           "PET_NPROC_PER_NODE": "2", "PET_NODE_RANK": "0", "PET_MASTER_PORT": free_port()}
    done = launcher.run(launcher.python, "-m", "torch.distributed.run", program, env=env)
    assert (done.status, done.stdout) == (0, "2\n2\n"), done.stderr
    assert done.ranks == TWO_RANKS
