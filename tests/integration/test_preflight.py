"""`devsan preflight`: a few steps of a command on simulated devices, a verdict, and its exit status."""

import os
import subprocess

import pytest

from harness import need_simulated_devices
from launchers import Launcher
from test_doctor import driver  # noqa: F401 (a fixture)

TRAINING = """
    import torch

    model = torch.nn.Linear(4, 4).to("cuda")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        loss = model(torch.ones(2, 4, device="cuda")).sum()
        loss.backward()
        {accumulate}
        optimizer.step()
        optimizer.zero_grad()
        print("made", step)
        {then}
"""

RANKS = """
    import os
    import torch
    import torch.distributed as dist

    dist.init_process_group("nccl")
    rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(rank)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 64).to(rank), device_ids=[rank])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(1000):
        model(torch.ones(2, 64, device=rank)).sum().backward()
        if rank == 1:
            torch.ones(200, 200) @ torch.ones(200, 200)  # takes longer than the other, and still makes its step
        optimizer.step()
        torch.distributed.all_reduce(torch.ones(1, device=rank))
        optimizer.zero_grad()
        os.write(1, f"rank {rank} made {step}\\n".encode())
"""


@pytest.fixture
def launcher(devsan, python, tmp_path):
    need_simulated_devices(python)
    return Launcher(devsan, python, tmp_path)


def preflight(launcher, *command, options=(), env=None):
    return launcher.run(launcher.devsan, "preflight", "--out", launcher.out, *options, "--", *command, env=env)


def training(launcher, accumulate="pass", then="pass"):
    return launcher.file("train.py", TRAINING.format(accumulate=accumulate, then=then))


def test_two_steps_run_and_the_verdict_is_ok(launcher):
    done = preflight(launcher, launcher.python, training(launcher))
    assert (done.status, done.stdout) == (0, "made 0\nmade 1\n"), done.stderr
    first, *more = done.stderr.splitlines()
    assert first == "devsan: preflight: ok"
    assert any(line.startswith("  1 process made 2 optimizer steps on 1 simulated device of ") for line in more)
    assert any("the command does not say how many it uses" in line for line in more)
    [process] = done.report["run"]["processes"]
    assert (process["close"], process["optimizer_steps"]) == ("stopped", 2)


def test_steps_are_those_of_the_optimizer_however_many_batches_make_one(launcher):
    program = training(launcher, accumulate="if step % 3 != 2: continue")
    done = preflight(launcher, launcher.python, program, options=["--steps", "3"])
    assert (done.status, done.stdout) == (0, "made 2\nmade 5\nmade 8\n"), done.stderr


def test_a_program_without_an_optimizer_is_stopped_too(launcher):
    program = training(launcher).read_text().replace("optimizer.step()", "pass")
    done = preflight(launcher, launcher.python, launcher.file("train.py", program))
    assert done.status == 0 and len(done.stdout.splitlines()) == 64, done.stderr
    assert "no step of an optimizer was seen" in done.stderr


def test_a_finding_decides(launcher):
    program = training(launcher, then="loss + torch.ones(1)  # on the host")
    done = preflight(launcher, launcher.python, program)
    assert done.status == 66 and "devsan: preflight: 1 finding" in done.stderr, done.stderr
    assert [f["kind"] for f in done.report["findings"] if f["severity"] == "error"] == ["device-mismatch"]


def test_a_program_that_ends_by_itself_says_how_far_it_came(launcher):
    done = preflight(launcher, launcher.python, training(launcher, then="break"))
    assert (done.status, done.stdout) == (0, "made 0\n"), done.stderr
    assert "the command ended by itself before 2 optimizer steps" in done.stderr


def test_a_program_that_fails_in_its_own_way_keeps_its_status(launcher):
    done = preflight(launcher, launcher.python, training(launcher, then="raise SystemExit(7)"))
    assert done.status == 7 and "devsan: preflight: the command failed with status 7" in done.stderr, done.stderr


def test_what_cannot_be_simulated_is_named(launcher):
    program = training(launcher, then="torch.cuda.Event(interprocess=True).ipc_handle()")
    done = preflight(launcher, launcher.python, program)
    assert done.status == 69 and "devsan: preflight: could not be simulated" in done.stderr, done.stderr
    assert "simulated devices do not cover torch.cuda.Event.ipc_handle" in done.stderr


def test_memory_that_this_machine_lacks_is_no_finding(launcher):
    """On real devices of that size the program would have had it."""
    program = training(launcher, then="torch.empty(1 << 46, dtype=torch.uint8, device='cuda')")
    done = preflight(launcher, launcher.python, program, options=["--gpu-memory", "128T"])
    assert done.status == 69, done.stderr
    assert "which is what this machine can spare" in done.stderr


def test_memory_that_the_device_lacks_is_a_finding(launcher):
    program = training(launcher, then="torch.empty(1 << 30, dtype=torch.uint8, device='cuda')")
    done = preflight(launcher, launcher.python, program, options=["--gpu-memory", "256M"])
    assert done.status == 66, done.stderr
    assert [f["kind"] for f in done.report["findings"] if f["severity"] == "error"] == ["out-of-memory"]


def test_a_program_without_torch_is_not_simulated(launcher):
    done = preflight(launcher, "true")
    assert done.status == 69 and "no process of the command ran an operator of torch" in done.stderr


def test_a_job_of_several_nodes_is_not_started(launcher):
    done = preflight(launcher, "torchrun", "--nnodes=2", training(launcher))
    assert done.status == 69 and "torchrun waits for 2 nodes" in done.stderr and done.stdout == ""
    assert not launcher.out.exists()


def test_ranks_of_torchrun_finish_their_step_before_any_of_them_ends(launcher):
    done = preflight(launcher, launcher.python, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2",
                     launcher.file("train.py", RANKS))
    assert done.status == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"rank {rank} made {step}" for rank in range(2) for step in range(2)]
    assert "2 processes made 2 optimizer steps on 2 simulated devices" in done.stderr
    ranks = [process for process in done.report["run"]["processes"] if process["rank"] is not None]
    assert [process["close"] for process in ranks] == ["stopped", "stopped"]
    assert {f["severity"] for f in done.report["findings"]} <= {"note"}


def test_devices_that_the_program_numbers_are_there(launcher):
    program = launcher.file("count.py", "import torch\nprint(torch.cuda.device_count(), torch.ones(1, device='cuda').device)\n")
    done = preflight(launcher, launcher.python, program, env={"CUDA_VISIBLE_DEVICES": "3,1"})
    assert (done.status, done.stdout) == (0, "2 cuda:0\n"), done.stderr


def test_without_its_hooks_the_command_ends_rather_than_train_for_real(launcher):
    """A shell hides the Python from devsan, and these hooks are none."""
    program = training(launcher)
    done = preflight(launcher, "sh", "-c", f"{launcher.python} {program}",
                     env={"DEVSAN_OPTIONS": f"hooks={launcher.folder}"})
    assert (done.status, done.stdout) == (69, ""), done.stderr
    assert "a rehearsal without devsan and its simulated devices is none" in done.stderr


@pytest.mark.parametrize("stage, status", [(2, 66), (3, 0)])
def test_errors_of_the_config_that_the_command_names_are_findings(launcher, stage, status):
    """Parameters are offloaded at stage 3 alone."""
    config = launcher.file("ds.json", f"""{{
        "train_micro_batch_size_per_gpu": 1,
        "zero_optimization": {{"stage": {stage}, "offload_param": {{"device": "cpu"}}}}
        }}""")
    done = preflight(launcher, launcher.python, training(launcher), "--deepspeed", config)
    assert done.status == status, done.stderr
    assert ("offload_param asks for cpu, and ZeRO is at stage 2" in done.stderr) == (stage == 2)
    assert ("1 error of devsan doctor" in done.stderr) == (stage == 2)
    assert done.stdout == "made 0\nmade 1\n", "the steps run all the same"


def test_the_gpus_of_this_machine_are_not_those_of_the_rehearsal(launcher, driver):  # noqa: F811
    """accelerate would have too few of them for a real run."""
    config = launcher.file("job.yaml", "distributed_type: MULTI_GPU\nnum_processes: 8\nnum_machines: 1\nmixed_precision: bf16\n")
    found = subprocess.run([launcher.devsan, "doctor", "--accelerate", config], capture_output=True, text=True,
                           env={**os.environ, **driver()}, check=False)
    assert "8 processes on this machine" in found.stdout
    accelerate = launcher.file("accelerate", "#!/bin/sh\n")
    accelerate.chmod(0o755)
    done = preflight(launcher, accelerate, "launch", "--config_file", config, "train.py", env=driver())
    assert "8 processes on this machine" not in done.stderr and "bf16 units" not in done.stderr


# Whose second layer a rule may expect on the other device.
LAYERS = """
    import torch

    print("started", flush=True)
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 4)).to("cuda:0")
    optimizer = torch.optim.Adam(model.parameters())
    for step in range(1000):
        loss = model(torch.ones(2, 4, device="cuda:0")).sum()
        print(loss.item() > -1e9)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


def rehearse_with_rules(launcher, rules, options=()):
    path = launcher.file("rules.toml", rules)
    return preflight(launcher, launcher.python, launcher.file("layers.py", LAYERS),
                     options=["--gpus", "2", "--rules", path, *options])


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_broken_rule_is_a_finding_of_the_verdict(launcher, options):
    done = rehearse_with_rules(launcher, """
        [[rule]]
        name = "the tail is on the second GPU"
        expect = "model.1 on cuda:1"
        [[rule]]
        expect = "model.0 on cuda:0"
        """, options)
    assert (done.status, done.stdout) == (66, "started\nTrue\nTrue\n"), done.stderr
    verdict = done.stderr[done.stderr.index("devsan: preflight: "):].splitlines()
    assert verdict[0] == "devsan: preflight: 1 finding"
    assert verdict[1] == (f"  broken rule at {launcher.folder / 'rules.toml'}:4: model.1 on cuda:1 "
                          "(the tail is on the second GPU)")
    assert "model.0 on" not in "".join(verdict)
    [finding] = [f for f in done.report["findings"] if f["kind"] == "wrong-placement"]
    assert finding["expectation"]["rule"] == "the tail is on the second GPU"
    assert ("wrong-placement" in done.stderr) == (not options)


def test_a_wait_that_a_rule_forbids_is_a_finding_of_the_verdict(launcher):
    done = rehearse_with_rules(launcher, 'expect = "no host sync"')
    assert done.status == 66 and "devsan: preflight: 1 finding" in done.stderr, done.stderr
    assert "rules.toml:1: no host sync" in done.stderr
    assert [f["kind"] for f in done.report["findings"] if f["severity"] == "warning"] == ["implicit-sync"]


def test_rules_that_are_kept_leave_the_verdict_ok(launcher):
    done = rehearse_with_rules(launcher, """
        expect = ["model on cuda:0", "optimizer state beside its parameter", "no transfer over 1 MiB"]
        """)
    assert done.status == 0 and "devsan: preflight: ok" in done.stderr, done.stderr
    assert "nothing has a name" not in done.stderr and "broken rule" not in done.stderr


def test_rules_with_a_mistake_are_refused_before_anything_starts(launcher):
    done = rehearse_with_rules(launcher, 'expect = "model.1 onn cuda:1"')
    assert (done.status, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith(f"devsan: preflight: {launcher.folder / 'rules.toml'}:1:")
    assert not launcher.out.exists()


def test_mistakes_in_rules_are_told_before_the_doctor_speaks(launcher):
    config = launcher.file("ds.json", '{"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}')
    done = preflight(launcher, launcher.python, training(launcher), "--deepspeed", config,
                     options=["--rules", launcher.folder / "none.toml"])
    assert (done.status, done.stdout) == (2, "")
    [line] = done.stderr.splitlines()
    assert line.startswith("devsan: preflight: ") and "none.toml" in line


def test_switching_devsan_off_is_refused(launcher):
    done = preflight(launcher, launcher.python, training(launcher), env={"DEVSAN_OPTIONS": "enabled=0"})
    assert (done.status, done.stdout) == (2, "") and "switches devsan off" in done.stderr


def test_where_memory_runs_out_the_kernel_ends_the_rehearsal_first(launcher):
    done = preflight(launcher, launcher.python, launcher.file("train.py", """
        import torch
        print(open("/proc/self/oom_score_adj").read().strip())
    """))
    assert done.stdout == "1000\n", done.stderr
