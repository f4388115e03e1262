"""The scripts that a new user calls first."""

import copy
import json
import subprocess
import sys

import pytest

from harness import ROOT


def script(name, *args, prefix=()):
    return subprocess.run([*prefix, ROOT / "scripts" / name, *args], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, cwd="/", timeout=600)


@pytest.mark.parametrize("name", ["setup", "test", "viewer"])
def test_unknown_option_is_refused_before_anything_is_done(name):
    done = script(name, "--no-such-option")
    assert done.returncode == 1
    assert done.stdout == "" and "--no-such-option" in done.stderr


@pytest.mark.parametrize("arguments", [
    ["--torch"], ["--fast", "--torch", "2.6.0"], ["--python", "python3"], ["--torch", "2.6.0", "--python", "/dev/null"]])
def test_options_of_another_torch_that_make_no_sense_are_refused_before_anything_is_done(arguments):
    done = script("test", *arguments)
    assert done.returncode == 1 and done.stdout == "" and "--torch" in done.stderr


@pytest.mark.parametrize("name", ["setup", "test", "viewer", "gpu_check", "torch_tests", "op_db", "gpu_truth", "fuzz"])
def test_help_says_how_to_call_it(name):
    done = script(name, "--help")
    assert done.returncode == 0 and f"{name} [" in done.stdout and done.stderr == ""


TORCH_TESTS = """\
import os
import pathlib
import pytest

traced = "LD_PRELOAD" in os.environ


def test_same():
    pass


def test_fails_in_both():
    assert False


@pytest.mark.skip
def test_skipped():
    pass


def test_fails_otherwise():
    raise ValueError("one" if traced else "two")


def test_fails_under_devsan():
    assert not traced


def test_crashes_under_devsan():
    if traced:
        os.abort()


def test_after_the_crash():
    pass


def test_is_not_steady():
    runs = pathlib.Path(__file__).with_name("runs")
    runs.write_text(runs.read_text() + "." if runs.exists() else ".")
    assert len(runs.read_text()) % 2
"""


def test_torch_tests_tells_each_test_that_ends_otherwise_under_devsan(tmp_path, devsan, python):
    (tmp_path / "test_torch.py").write_text(TORCH_TESTS)
    done = script("torch_tests", "--folder", tmp_path, "--python", python, "--devsan", devsan, "--shards", "2",
                  "test_torch.py")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "| test_torch.py | 8 | 2 | 1 | 1 | 0 | 1 | 3 |" in done.stdout
    differences = [line for line in done.stdout.splitlines() if line.startswith("difference: ")]
    assert [line.split("::")[1] for line in differences] == [
        "test_fails_otherwise", "test_fails_under_devsan", "test_crashes_under_devsan"]
    assert "devsan: crashed with SIGABRT" in done.stdout and "flaky: test_torch.py::test_is_not_steady" in done.stdout


def test_torch_tests_says_what_is_missing(tmp_path):
    done = script("torch_tests", "--folder", tmp_path)
    assert done.returncode == 2 and "has no test_torch.py" in done.stderr


def test_second_setup_needs_no_network():
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("a network namespace cannot be made here")
    # Programs that run have the library mapped, and hooks are told by the sources.
    installed = [ROOT / ".venv/lib/devsan/libdevsan.so", *(ROOT / ".venv/share/devsan/src").rglob("*")]
    before = [(path.stat().st_ino, path.stat().st_mtime_ns) for path in installed if path.is_file()]
    done = script("setup", prefix=alone)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Installing" not in done.stdout
    assert before == [(path.stat().st_ino, path.stat().st_mtime_ns) for path in installed if path.is_file()]
    assert str(ROOT / ".venv/bin/devsan") in done.stdout


FINDING = {
    "kind": "device-mismatch",
    "severity": "error",
    "raised": True,
    "where": {"file": "/x/deepspeed/runtime/zero/stage3.py", "line": 2117, "function": "DeepSpeedZeroOptimizer_Stage3.unscale_and_clip_grads"},
    "step": 17,
    "operands": [
        {"name": "self.fp32_partitioned_groups_flat[sub_group_id].grad", "odd": False, "lineage": []},
        {"name": "combined_scale", "odd": True, "lineage": []},
    ],
    "fix": {"file": "stage3.py", "line": 2000, "text": "…"},
}


def check_demo(tmp_path, bug, fixed):
    paths = [tmp_path / "bug.json", tmp_path / "fixed.json"]
    for path, findings in zip(paths, (bug, fixed)):
        path.write_text(json.dumps({"schema": "devsan-report/1", "run": {}, "findings": findings, "damage": []}))
    return subprocess.run([sys.executable, ROOT / "scripts/check_demo.py", *paths], capture_output=True, text=True)


def changed(**fields):
    finding = copy.deepcopy(FINDING)
    finding.update(fields)
    return finding


def test_demo_accepts_the_finding_it_is_about(tmp_path):
    note = changed(severity="note", raised=False, kind="mixed-operands")
    done = check_demo(tmp_path, [FINDING, note], [note])
    assert done.returncode == 0, done.stderr
    temporary = {"name": None, "odd": True, "lineage": [{"file": "/x/deepspeed/runtime/zero/stage3.py"}]}
    assert check_demo(tmp_path, [changed(operands=[temporary])], []).returncode == 0


@pytest.mark.parametrize("bug, fixed", [
    ([], []),
    ([changed(step=16)], []),
    ([changed(kind="mixed-operands")], []),
    ([changed(raised=False)], []),
    ([changed(where=None)], []),
    ([changed(where={"file": "/x/engine.py", "line": 1, "function": "unscale_and_clip_grads"})], []),
    ([changed(operands=[{"name": "grad", "odd": True, "lineage": []}])], []),
    ([changed(fix=None)], []),
    ([FINDING], [FINDING]),
])
def test_demo_refuses_any_other_outcome(tmp_path, bug, fixed):
    done = check_demo(tmp_path, bug, fixed)
    assert done.returncode == 1 and done.stderr.strip()
