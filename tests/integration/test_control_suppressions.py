"""Files of suppressions, from the command line to the report."""

import subprocess

import pytest

from harness import view

RAISES = """
    import torch

    def add():
        return torch.ones(3, device="cuda") + torch.ones(3)

    add()
"""
RAISES_IN_THREAD = """
    import threading, torch
    threading.excepthook = lambda args: None

    def add():
        return torch.ones(3, device="cuda") + torch.ones(3)

    for _ in range(2):
        thread = threading.Thread(target=add)
        thread.start()
        thread.join()
"""
CLEAN = "import torch; torch.ones(3) + 1"


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "devsan.supp"
        path.write_text(text)
        return path

    return write


@pytest.fixture
def suppressed(run_python, written):
    def run(text, source=RAISES_IN_THREAD, **kwargs):
        return run_python(source, sim=1, options=["--suppressions", written(text), "--fail-on", "any"], **kwargs)

    return run


@pytest.mark.parametrize("entry", [
    "device-mismatch",
    "mixed-operands,device-mismatch",
    "any op=aten::add",
    "device-mismatch op=aten::add.Tensor file=program*.py function=add",
    "device-mismatch file=*/program?.py",
])
def test_a_suppressed_finding_is_kept_apart_and_fails_nothing(suppressed, entry):
    result = suppressed(f"# on purpose\n{entry}\n")
    assert (result.status, result.stderr) == (0, "")
    assert result.findings == []
    [finding] = result.report["suppressed"]
    assert finding["kind"] == "device-mismatch" and finding["count"] == 2
    assert finding["silence"]["by"] == "suppression"
    assert (finding["silence"]["line"], finding["silence"]["text"], finding["silence"]["reason"]) == (
        2, entry, "on purpose")
    assert [use["count"] for use in result.report["run"]["suppressions"]] == [2]


@pytest.mark.parametrize("entry", [
    "mixed-operands",
    "device-mismatch op=aten::addmm*",
    "device-mismatch file=other.py",
    "device-mismatch function=ad",
    "device-mismatch op=aten::add file=program*.py function=other",
])
def test_an_entry_that_does_not_match_is_listed_as_unused(suppressed, entry):
    result = suppressed(f"{entry}  # why\n")
    assert result.status == 66
    assert "device mismatch in aten::add.Tensor" in result.stderr
    # A long path is broken into lines anywhere.
    assert f"devsan.supp:1:{entry}".replace(" ", "") in "".join(result.stderr.split())
    assert len(result.raised()) == 1 and result.report["suppressed"] == []


def test_the_program_still_gets_its_exception(suppressed):
    result = suppressed("device-mismatch", RAISES)
    assert result.status == 1 and "Expected all tensors to be on the same device" in result.stderr
    assert "device mismatch in" not in result.stderr


def test_unused_entries_of_a_clean_run_are_listed(suppressed):
    result = suppressed("device-mismatch file=gone.py\n", CLEAN)
    assert "unused suppression:" in result.stderr and "file=gone.py" in result.stderr


def test_mistakes_are_told_with_their_lines_before_anything_runs(suppressed, tmp_path):
    result = suppressed("device-mismatch\nno-such-kind op=x\n\nimplicit-sync fiel=x\nany\n", """
        open("ran", "w")
    """)
    assert (result.status, result.stdout) == (2, "")
    lines = result.stderr.splitlines()
    assert [line.partition("devsan.supp:")[2].split(":")[0] for line in lines] == ["2", "4", "5"]
    assert "'no-such-kind'" in lines[0] and "device-mismatch" in lines[0]
    assert "'fiel'" in lines[1]
    assert not (tmp_path / "ran").exists() and not result.out.exists()


@pytest.mark.parametrize("name, reason", [("gone.supp", "No such file"), (".", "directory")])
def test_a_file_that_is_not_there_is_a_mistake(run_python, name, reason):
    result = run_python(CLEAN, options=["--suppressions", name])
    assert result.status == 2 and reason in result.stderr


def test_a_relative_file_holds_for_children_that_run_elsewhere(run_python, written, tmp_path):
    written("device-mismatch")
    (tmp_path / "elsewhere").mkdir()
    child = run_python.program(RAISES)
    result = run_python(f"""
        import subprocess, sys, torch
        torch.ones(1) + 1
        subprocess.run([sys.executable, {str(child)!r}], cwd="elsewhere", stderr=subprocess.DEVNULL)
    """, sim=1, options=["--suppressions", "devsan.supp", "--fail-on", "any"])
    assert result.status == 0, result.stderr
    assert len(result.report["suppressed"]) == 1 and result.findings == []


def test_a_forked_child_suppresses_as_its_parent_does(run_python, written):
    result = run_python("""
        import os, torch
        a, b = torch.ones(3, device="cuda"), torch.ones(3)
        if os.fork() == 0:
            try:
                a + b
            finally:
                os._exit(0)
        os.wait()
    """, sim=1, options=["--suppressions", written("device-mismatch # forked")])
    assert "device mismatch" not in result.stderr
    child = next(p for p in result.report["run"]["processes"] if p["parent_pid"] in
                 [other["pid"] for other in result.report["run"]["processes"]])
    alone = view(result.devsan, child["trace"])
    assert len(alone["suppressed"]) == 1 and alone["findings"] == []


def test_the_option_works_under_the_bare_preload(run_python, written):
    result = run_python(RAISES, sim=1, preload=True,
                        options=[f"suppressions={written('device-mismatch')}"])
    assert "device mismatch in" not in result.stderr and "Expected all tensors" in result.stderr
    assert result.findings == [] and len(result.report["suppressed"]) == 1


def test_mistakes_under_the_bare_preload_are_told_once_and_the_rest_counts(run_python, written):
    path = written("nonsense\ndevice-mismatch\n")
    result = run_python("""
        import subprocess, sys, torch
        torch.ones(1) + 1
        subprocess.run([sys.executable, "-c", "import torch; torch.ones(1) + 1"])
        torch.ones(3, device="cuda") + torch.ones(3)
    """, sim=1, preload=True, options=[f"suppressions={path}"])
    assert result.stderr.count(f"suppressions: {path}:1: unknown kind 'nonsense'") == 1
    assert result.findings == [] and len(result.report["suppressed"]) == 1


def test_a_missing_file_under_the_bare_preload_changes_nothing(run_python):
    result = run_python(RAISES, sim=1, preload=True, options=["suppressions=/no/such/file"])
    assert result.status == 1 and "/no/such/file: No such file or directory" in result.stderr
    assert len(result.raised()) == 1


def test_view_takes_another_file_instead(run_python, devsan, written, tmp_path):
    result = run_python(RAISES_IN_THREAD, sim=1, options=["--suppressions", written("device-mismatch")])

    def shown(*options):
        return subprocess.run([devsan, "view", result.out, *options], capture_output=True, text=True)

    assert "1 suppressed finding hidden" in shown().stdout and "error[" not in shown().stdout
    everything = shown("--suppressed").stdout
    assert "error[device-mismatch]" in everything and "suppressed by" in everything
    assert "error[device-mismatch]" in shown("--suppressions", "/dev/null").stdout
    other = tmp_path / "other.supp"
    other.write_text("any file=program*.py\nimplicit-sync\n")
    assert "unused suppression:" in shown("--suppressions", other).stdout
    other.write_text("any file=program*.py\nwhat\n")
    wrong = shown("--suppressions", other)
    assert (wrong.returncode, wrong.stdout) == (2, "") and "other.supp:2: " in wrong.stderr
