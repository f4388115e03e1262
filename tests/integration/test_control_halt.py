"""`--halt`: an error that the program does not handle ends the process with 66."""

import subprocess

import pytest

from harness import Runner, shell_status

UNCAUGHT = """
    import atexit, sys, torch
    atexit.register(lambda: print("exit handlers run", flush=True))
    sys.stdout.write("buffered ")
    torch.ones(3, device="cuda") + torch.ones(3)
"""
HANDLED = """
    import torch
    for _ in range(3):
        try:
            torch.ones(3, device="cuda") + torch.ones(3)
        except RuntimeError:
            print("handled")
    torch.ones(3) + 1
"""
HANDLED_AND_NOTHING_AFTER = """
    import torch
    a, b = torch.ones(3, device="cuda"), torch.ones(3)
    try:
        a + b
    except RuntimeError:
        print("handled")
"""
IN_THREAD = """
    import threading, torch
    threading.excepthook = lambda args: None
    thread = threading.Thread(target=lambda: torch.ones(3, device="cuda") + torch.ones(3))
    thread.start()
    thread.join()
    print("goes on")
"""


@pytest.fixture(params=["run", "preload"])
def halting(request, run_python):
    """Runs a program with the option, by `devsan run` and under the bare preload."""
    def run(source, **kwargs):
        if request.param == "preload":
            return run_python(source, sim=1, preload=True, options=["halt=1"], **kwargs)
        return run_python(source, sim=1, options=["--halt"], **kwargs)

    run.by_run = request.param == "run"
    return run


def test_an_exception_that_nobody_catches_ends_the_process_with_66(halting):
    result = halting(UNCAUGHT)
    assert result.status == 66
    # The program has ended in its own way: nothing of its output is lost, or written twice.
    assert result.stdout == "buffered exit handlers run\n"
    assert result.stderr.count("Traceback") == 1
    assert "the process ends with 66 instead of 1, as the option halt asks" in result.stderr
    assert [p["close"] for p in result.report["run"]["processes"]] == ["halted"]
    assert len(result.raised()) == 1 and not result.raised()[0]["handled"]
    if halting.by_run:
        assert "was ended by --halt" in result.stderr and "to see it all: devsan view" in result.stderr


@pytest.mark.parametrize("source", [HANDLED, HANDLED_AND_NOTHING_AFTER])
def test_what_the_program_handles_is_passed_over(halting, source):
    result = halting(source)
    assert result.status == 0 and set(result.stdout.split()) == {"handled"}
    assert "halt" not in result.stderr
    assert [p["close"] for p in result.report["run"]["processes"]] == ["exited"]


def test_an_exception_that_ends_a_thread_changes_the_status_of_the_process(halting):
    result = halting(IN_THREAD)
    assert (result.status, result.stdout) == (66, "goes on\n")
    assert "ends with 66 instead of 0" in result.stderr


def test_a_program_that_leaves_by_itself_for_the_error_ends_with_66(halting):
    leaves = """
        import os, sys, torch
        try:
            torch.ones(3, device="cuda") + torch.ones(3)
        except RuntimeError:
            {}
    """
    assert halting(leaves.format("sys.exit(3)")).status == 66
    assert halting(leaves.format("os._exit(3)")).status == 66


def test_other_failures_keep_their_status(halting):
    result = halting("""
        import torch
        torch.ones(3, device="cuda") + 1
        raise SystemExit(5)
    """)
    assert result.status == 5 and "halt" not in result.stderr
    assert halting("import torch; torch.ones(3) + torch.ones(4)").status == 1


def test_clean_programs_and_allowed_mixes_are_not_halted(halting):
    result = halting("""
        import torch
        print((torch.ones(3, device="cuda") * torch.tensor(2.0)).sum().item())
    """)
    assert (result.status, result.stdout) == (0, "6.0\n")


def test_suppressed_findings_do_not_halt(run_python, tmp_path):
    (tmp_path / "devsan.supp").write_text("device-mismatch file=program*.py")
    result = run_python(IN_THREAD, sim=1, options=["--halt", "--suppressions", "devsan.supp"])
    assert (result.status, result.stderr) == (0, "")
    assert run_python(UNCAUGHT, sim=1, options=["--halt", "--suppressions", "devsan.supp"]).status == 1


def test_children_that_are_forked_end_with_66_themselves(halting):
    result = halting("""
        import multiprocessing, torch

        def fail():
            torch.ones(3, device="cuda") + torch.ones(3)

        def handle():
            try:
                fail()
            except RuntimeError:
                pass

        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                for target in (fail, handle):
                    process = multiprocessing.get_context(method).Process(target=target)
                    process.start()
                    process.join()
                    print(method, target.__name__, process.exitcode)
    """)
    assert result.stdout.splitlines() == ["fork fail 66", "fork handle 0", "spawn fail 66", "spawn handle 0"]
    assert result.status == 0, result.stderr


def test_the_parent_of_a_fork_is_not_halted_for_its_child(halting):
    result = halting("""
        import os, torch
        a, b = torch.ones(3, device="cuda"), torch.ones(3)
        try:
            a + b
        except RuntimeError:
            child = os.fork()
            if child == 0:
                os._exit(7)   # what the parent raised is the parent's
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        torch.ones(3) + 1
    """)
    assert (result.status, result.stdout) == (0, "7\n"), result.stderr


def test_ranks_of_torchrun_end_with_66(devsan, python, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text("import torch\ntorch.ones(3, device='cuda') + torch.ones(3)\n")
    runner = Runner(devsan, python, tmp_path)
    command = [devsan, "run", "--sim", "1", "--halt", "--out", tmp_path / "out", "--", python, "-m",
               "torch.distributed.run", "--standalone", "--nproc-per-node=2", worker]
    done = subprocess.run(command, env=runner.environment({"OMP_NUM_THREADS": "1"}), cwd=tmp_path, capture_output=True,
                          text=True, timeout=180)
    assert shell_status(done.returncode) == 1, done.stderr  # torchrun's own
    assert "exitcode  : 66" in done.stderr
    assert "was ended by --halt" in done.stderr
