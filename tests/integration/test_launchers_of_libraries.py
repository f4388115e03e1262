"""Launchers that come with training libraries: two ranks each, in the ways in which they are started in the field."""

import pathlib

import pytest

from harness import need_simulated_devices
from launchers import COUNTED, GROUP_PROGRAM, TWO_RANKS, Launcher, free_port
from library_environment import RAY, make_environment

pytestmark = pytest.mark.slow


@pytest.fixture
def launcher(devsan, newest_libraries, tmp_path):
    return Launcher(devsan, newest_libraries, tmp_path)


@pytest.fixture
def program(launcher):
    return launcher.file("train.py", GROUP_PROGRAM)


def counted(done):
    """What the ranks said, among what their launcher says."""
    assert done.status == 0, done.stderr
    return {line.partition("]: ")[2] or line for line in done.stdout.splitlines() if " counts " in line}


def test_accelerate_starts_two_ranks_by_a_file(launcher, program):
    need_simulated_devices(launcher.python)
    config = launcher.file("two.yaml", """\
        compute_environment: LOCAL_MACHINE
        distributed_type: MULTI_GPU
        gpu_ids: all
        machine_rank: 0
        main_training_function: main
        mixed_precision: 'no'
        num_machines: 1
        num_processes: 2
        """)
    done = launcher.under_devsan(launcher.python.parent / "accelerate", "launch", "--config_file", config,
                                 "--main_process_port", free_port(), program, options=["--sim", "2"])
    assert counted(done) == COUNTED
    assert done.ranks == TWO_RANKS


def test_accelerate_starts_two_ranks_by_options(launcher, program):
    need_simulated_devices(launcher.python)
    options = ["--multi_gpu", "--num_processes=2", "--num_machines=1", "--mixed_precision=no", "--dynamo_backend=no"]
    done = launcher.under_devsan(launcher.python, "-m", "accelerate.commands.launch", *options,
                                 "--main_process_port", free_port(), program, options=["--sim", "2"])
    assert counted(done) == COUNTED
    assert done.ranks == TWO_RANKS


def test_deepspeed_starts_two_ranks(launcher, program):
    need_simulated_devices(launcher.python)
    done = launcher.under_devsan(launcher.python.parent / "deepspeed", "--num_gpus=2", f"--master_port={free_port()}",
                                 program, options=["--sim", "2"])
    assert counted(done) == COUNTED
    assert done.ranks == TWO_RANKS


def test_deepspeed_takes_devsan_to_other_nodes_by_its_environment_file(launcher, program):
    """What its launcher starts by ssh has a fresh environment, and the variables of .deepspeed_env."""
    launcher.file(".deepspeed_env", f"LD_PRELOAD={launcher.library}\nDEVSAN_OPTIONS=out={launcher.out}\n")
    hosts = launcher.file("hosts", "one slots=1\ntwo slots=1\n")
    done = launcher.run(launcher.python.parent / "deepspeed", "--hostfile", hosts, "--master_addr=127.0.0.1",
                        f"--master_port={free_port()}", "--no_ssh_check", "--launcher=pdsh", program)
    assert counted(done) == COUNTED
    assert done.ranks == [(0, 0, 2, 0), (1, 0, 2, 1)]
    assert done.report["run"]["other_runs"] == 0


def test_lightning_finds_its_ranks_in_the_variables_of_srun(launcher):
    program = launcher.file("train.py", """
        import lightning
        import torch

        fabric = lightning.Fabric(accelerator="cpu", devices=2, num_nodes=1, strategy="ddp")
        fabric.launch()
        print("rank", fabric.global_rank, "counts", int(fabric.all_reduce(torch.ones(1), reduce_op="sum")), flush=True)
        """)
    done = launcher.run("srun", "--ntasks=2", launcher.devsan, "run", "--out", launcher.out, "--", launcher.python,
                        program, env={"MASTER_PORT": free_port()})
    assert counted(done) == COUNTED
    assert done.ranks == TWO_RANKS


def test_ray_train_starts_workers_with_devsan_by_their_runtime_environment(devsan, python, tmp_path):
    """Its workers are started by a daemon of Ray, which knows nothing of the driver's environment."""
    launcher = Launcher(devsan, make_environment(python, RAY), tmp_path)
    program = launcher.file("train.py", """
        import os
        import subprocess
        import ray
        from ray.train import RunConfig, ScalingConfig
        from ray.train.torch import TorchTrainer

        def work():
            import torch
            import torch.distributed as dist

            total = torch.ones(1)
            dist.all_reduce(total)
            with open(f"{os.environ['OUT']}.{dist.get_rank()}", "w") as told:
                told.write(str(int(total)))

        library = subprocess.check_output(["devsan", "lib"], text=True).strip()
        devsan = {"LD_PRELOAD": library, "DEVSAN_OPTIONS": f"out={os.environ['TRACES']}:run=ray", "OUT": os.environ["OUT"]}
        ray.init(num_cpus=3, include_dashboard=False)
        trainer = TorchTrainer(work, scaling_config=ScalingConfig(num_workers=2),
                               run_config=RunConfig(storage_path=os.environ["OUT"] + ".ray",
                                                    worker_runtime_env={"env_vars": devsan}))
        trainer.fit()
        """)
    told = tmp_path / "told"
    done = launcher.run(launcher.python, program, timeout=600,
                        env={"TRACES": str(launcher.out), "OUT": str(told), "RAY_USAGE_STATS_ENABLED": "0"})
    assert done.status == 0, done.stderr
    assert [pathlib.Path(f"{told}.{rank}").read_text() for rank in range(2)] == ["2", "2"]
    assert done.ranks == TWO_RANKS
