"""A directory that is used by several runs: which traces are of which, and which of them are shown."""

import subprocess

import pytest

import harness

BROKEN = 'import torch\ntorch.ones(2) + torch.ones(2, device="cuda")\n'
MENDED = 'import torch\ntorch.ones(2, device="cuda") + torch.ones(2, device="cuda")\n'


def view(devsan, *arguments):
    done = subprocess.run([devsan, "view", *map(str, arguments)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("preload", [False, True])
def test_a_mended_program_does_not_show_its_old_error(run_python, devsan, tmp_path, preload):
    first = run_python(BROKEN, sim=1, out=tmp_path / "out", preload=preload)
    assert first.status == 1 and len(first.raised()) == 1
    assert first.report["run"]["other_runs"] == 0
    second = run_python(MENDED, sim=1, out=tmp_path / "out", preload=preload)
    assert second.status == 0
    assert second.findings == []
    run = second.report["run"]
    assert run["other_runs"] == 1
    assert run["id"] != first.report["run"]["id"]
    assert {process["run"] for process in run["processes"]} == {run["id"]}


def test_view_says_how_many_earlier_runs_there_are_and_shows_them_when_asked(run_python, devsan, tmp_path):
    for program in (BROKEN, BROKEN, MENDED):
        run_python(program, sim=1, out=tmp_path / "out")
    shown = view(devsan, tmp_path / "out")
    assert "no finding in 1 process" in shown
    assert "2 earlier runs hidden, --all-runs shows them" in shown
    assert all(len(line) <= 80 for line in shown.splitlines())
    everything = view(devsan, "--all-runs", tmp_path / "out")
    assert everything.count("error[device-mismatch]") >= 1 and "in 3 processes" in everything
    assert "hidden" not in everything


def test_view_of_the_directory_of_all_runs_shows_the_newest(run_python, devsan, tmp_path):
    for name, program in (("a-mended", MENDED), ("b-broken", BROKEN)):
        run_python(program, sim=1, out=tmp_path / "runs" / name)
    (tmp_path / "runs/notes").mkdir()
    shown = view(devsan, tmp_path / "runs")
    assert shown.count("error[device-mismatch]") == 1 and "1 earlier run hidden, --all-runs shows them" in shown
    assert "in 2 processes" in view(devsan, "--all-runs", tmp_path / "runs")


def test_traces_that_are_named_are_shown_whatever_run_they_are_of(run_python, devsan, tmp_path):
    for program in (BROKEN, MENDED):
        run_python(program, sim=1, out=tmp_path / "out")
    shown = view(devsan, *sorted((tmp_path / "out").glob("*.devsan")))
    assert "in 2 processes" in shown and "hidden" not in shown


def test_fail_on_and_the_summary_speak_of_their_own_run(run_python, tmp_path):
    run_python(BROKEN, sim=1, out=tmp_path / "out")
    mended = run_python(MENDED, sim=1, out=tmp_path / "out", options=("--fail-on", "any"))
    assert (mended.status, mended.stderr) == (0, "")


FAMILY = """
    import multiprocessing, os, subprocess, sys, torch
    def work():
        torch.ones(2) + 1
    if __name__ == "__main__":
        work()
        child = os.fork()
        if child == 0:
            work()
            os._exit(0)
        os.waitpid(child, 0)
        process = multiprocessing.get_context("spawn").Process(target=work)
        process.start()
        process.join()
        command = [sys.executable, "-c", "import torch; torch.ones(2) + 1"]
        subprocess.run(command, check=True)
        os.environ["DEVSAN_OPTIONS"] = "quiet=1"
        subprocess.run(command, check=True)
"""


@pytest.mark.parametrize("preload", [False, True])
def test_children_are_of_their_parents_run_however_they_are_made(run_python, tmp_path, preload):
    run_python(MENDED, sim=1, out=tmp_path / "out", preload=preload)
    run = run_python(FAMILY, out=tmp_path / "out", preload=preload)
    assert run.status == 0, run.stderr
    assert run.report["run"]["other_runs"] == 1
    assert len(run.report["run"]["processes"]) >= 5


def test_a_shell_script_under_the_preload_is_one_run(run_python, tmp_path):
    program = run_python.program("import torch; torch.ones(2) + 1")
    environment = run_python.environment({
        "LD_PRELOAD": run_python.library, "DEVSAN_OPTIONS": f'out="{tmp_path / "out"}"'
    })
    for _ in range(2):
        script = f"'{run_python.python}' '{program}' && '{run_python.python}' '{program}' && true"
        subprocess.run(["bash", "-c", script], env=environment, check=True, timeout=120)
    run = harness.view(run_python.devsan, tmp_path / "out")["run"]
    assert len(run["processes"]) == 2 and run["other_runs"] == 1


WORKER = """
    import os, sys, torch
    torch.ones(2) + 1
    sys.exit(0 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else 1)
"""


def torchrun(run_python, out, how):
    """Runs two workers, of which the first attempt fails, with devsan in them by `how`."""
    command = [run_python.python, "-m", "torch.distributed.run", "--standalone", "--max-restarts=1",
               "--nproc-per-node=2", "--monitor-interval=0.1"]
    environment = run_python.environment({"DEVSAN_OPTIONS": f'out="{out}"', "OMP_NUM_THREADS": "1"})
    if how == "logs-specs":
        command.append("--logs-specs=devsan")
    elif how == "run":
        command = [run_python.devsan, "run", "--out", out, "--", *command]
    else:
        environment["LD_PRELOAD"] = run_python.library
    subprocess.run([*command, run_python.program(WORKER)], env=environment, check=True, timeout=170)


@pytest.mark.parametrize("how", ["logs-specs", "run", "preload"])
def test_the_attempts_of_torchrun_are_one_run(run_python, tmp_path, how):
    run_python("import torch; torch.ones(2) + 1", out=tmp_path / "out")
    torchrun(run_python, tmp_path / "out", how)
    run = harness.view(run_python.devsan, tmp_path / "out")["run"]
    workers = [process for process in run["processes"] if process["rank"] is not None]
    assert sorted(process["rank"] for process in workers) == [0, 0, 1, 1]
    assert run["other_runs"] == 1


# A node of two, which ends when the other one has begun.
NODE = """
    import pathlib, sys, time, torch
    torch.ones(2) + 1
    mine, other = (pathlib.Path(name) for name in sys.argv[1:3])
    mine.touch()
    while not other.exists():
        time.sleep(0.01)
"""


def test_nodes_that_a_launcher_gave_one_rendezvous_are_one_run(run_python, tmp_path):
    program = run_python.program(NODE)
    def node(name, other, rank):
        environment = run_python.environment({"TORCHELASTIC_RUN_ID": "job-7", "RANK": str(rank)})
        return subprocess.Popen([run_python.devsan, "run", "--out", tmp_path / "out", "--", run_python.python, program,
                                 tmp_path / name, tmp_path / other], env=environment)
    for attempt in ("first", "second"):
        nodes = [node(f"{attempt}0", f"{attempt}1", 0), node(f"{attempt}1", f"{attempt}0", 1)]
        assert [node.wait(timeout=120) for node in nodes] == [0, 0]
        run = harness.view(run_python.devsan, tmp_path / "out")["run"]
        assert sorted(process["rank"] for process in run["processes"]) == [0, 1]
        assert run["other_runs"] == (attempt == "second")
