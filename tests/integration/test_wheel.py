"""The wheel, as a user has it: in a virtual environment with nothing else than torch, on a machine without a compiler."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import zipfile

import pytest

from harness import ROOT, is_cuda_build

sys.path.insert(0, str(ROOT / "scripts"))
import wheel_check  # noqa: E402 - found by the line above
import wheel_tools  # noqa: E402

TORCH = "2.13.0"
# What a program needs of a system without development tools.
COMMANDS = ["bash", "sh", "env", "cat", "uname"]
PROGRAMS = sorted((ROOT / "corpus/train").glob("[0-9]*.py"))
SOME = [path for path in PROGRAMS if "# expect: raises" in path.read_text()][::len(PROGRAMS) // 10][:10]
WORKER = """
import os, torch
rank = int(os.environ["RANK"])
torch.ones(3, device=f"cuda:{rank}") + torch.ones(3)
"""


def make_library(folder, name, source):
    (folder / "a.c").write_text(source)
    subprocess.run(["gcc", "-shared", "-fPIC", folder / "a.c", "-o", folder / name], check=True)


def test_a_symbol_of_a_newer_glibc_is_refused(tmp_path):
    make_library(tmp_path, "new.so", "extern int arc4random(void);\nint f(void) { return arc4random(); }\n")
    with pytest.raises(wheel_tools.Failure, match=r"new\.so needs arc4random of GLIBC_2\.36"):
        wheel_check.check_floor(tmp_path)


def test_symbols_of_an_old_glibc_pass_and_the_highest_is_told(tmp_path):
    make_library(tmp_path, "old.so", "extern int puts(const char*);\nint f(void) { return puts(\"\"); }\n")
    assert wheel_check.check_floor(tmp_path)["GLIBC"] == "2.2.5"


def test_a_wheel_that_depends_on_anything_is_refused(tmp_path):
    info = tmp_path / "devsan-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: devsan\nRequires-Dist: torch\n")
    with pytest.raises(wheel_tools.Failure, match="dependencies"):
        wheel_check.check_dependencies(tmp_path)


def test_every_listed_release_of_torch_is_listed_once():
    lines = [line for line in (ROOT / "packaging/torches.txt").read_text().splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines)) and all(re.fullmatch(r"\d+\.\d+\.\d+( (pre-)?cxx11)?", line) for line in lines)


@pytest.fixture(scope="module")
def wheel():
    """That of one release, unless one was made beforehand."""
    made = os.environ.get("DEVSAN_TEST_WHEEL")
    if made:
        return pathlib.Path(made)
    out = ROOT / "build/wheel/test"
    done = subprocess.run([sys.executable, ROOT / "scripts/wheel", "--torch", TORCH, "--out", out], capture_output=True,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return next(out.glob("*.whl"))


class Machine:
    def __init__(self, wheel, folder):
        self.folder = folder
        self.venv = folder / "venv"
        subprocess.run([sys.executable, "-m", "venv", self.venv], check=True)
        self.pip(f"torch=={TORCH}", "numpy")
        assert not os.environ.get("DEVSAN_TEST_WHEEL_CUDA") or is_cuda_build(str(self.venv / "bin/python"))
        before = self.packages()
        self.pip(wheel)
        assert self.packages() - before == {"devsan"}
        (folder / "bin").mkdir()
        for command in COMMANDS:
            (folder / "bin" / command).symlink_to(shutil.which(command))
        self.env = {"HOME": str(folder), "PATH": f"{self.venv}/bin:{folder}/bin"}

    def pip(self, *packages):
        subprocess.run([self.venv / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages], check=True)

    def packages(self):
        listed = subprocess.run([self.venv / "bin/python", "-m", "pip", "list", "--format=json"], capture_output=True, check=True)
        return {package["name"] for package in json.loads(listed.stdout)}

    def __call__(self, *words, env=None):
        return subprocess.run(list(map(str, words)), env={**self.env, **(env or {})}, cwd=self.folder, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=300, check=False)


@pytest.fixture(scope="module")
def machine(wheel, tmp_path_factory):
    return Machine(wheel, tmp_path_factory.mktemp("machine"))


def findings(devsan, out):
    """What a report says of each finding that does not depend on the process or the place of torch."""
    shown = subprocess.run([devsan, "view", "--json", "-", out], capture_output=True, text=True, check=True).stdout
    kept = ("kind", "severity", "raised", "message", "op", "step", "phase", "count")
    place = lambda at: at and (pathlib.Path(at["file"]).name, at["line"])  # noqa: E731
    return [{**{key: finding[key] for key in kept}, "where": place(finding["where"]), "cause": place(finding["root_cause"]),
             "operands": [(operand["name"], operand["device"]) for operand in finding["operands"]],
             "fix": finding["fix"] and finding["fix"]["text"]} for finding in json.loads(shown)["findings"]]


@pytest.mark.slow
def test_the_wheel_holds_no_hidden_file_and_its_record_is_whole(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        record = archive.read(next(name for name in names if name.endswith("/RECORD"))).decode()
    assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(names)
    assert not [name for name in names if "/." in name or "__pycache__" in name]


@pytest.mark.slow
def test_no_compiler_is_in_reach_and_none_is_needed(machine):
    assert not [name for name in ("g++", "c++", "clang++", "gcc") if shutil.which(name, path=machine.env["PATH"])]
    said = machine("devsan", "--version")
    assert f"lib/devsan/hooks/{'.'.join(TORCH.split('.')[:2])}" in said.stdout, said.stdout + said.stderr


@pytest.mark.slow
@pytest.mark.parametrize("program", SOME, ids=lambda path: path.stem)
def test_programs_give_the_findings_of_a_source_build(machine, devsan, python, program, tmp_path):
    devices = (re.findall(r"^# needs: (\d+) GPUs$", program.read_text(), re.M) or ["2"])[0]
    run = machine("devsan", "run", "--quiet", "--sim", devices, "--out", tmp_path / "wheel", "--", "python", program)
    assert "\ndevsan: " not in f"\n{run.stderr}"  # nothing is built, and nothing is missing
    subprocess.run([devsan, "run", "--quiet", "--sim", devices, "--out", tmp_path / "source", "--", python, program],
                   capture_output=True, check=False)
    assert findings(machine.venv / "bin/devsan", tmp_path / "wheel") == findings(devsan, tmp_path / "source") != []
    assert not (machine.folder / ".cache/devsan").exists(), "nothing is compiled or cached"


@pytest.mark.slow
def test_torchrun_traces_its_workers(machine, tmp_path):
    worker = tmp_path / "worker.py"
    worker.write_text(WORKER)
    run = machine("torchrun", "--logs-specs=devsan", "--nproc-per-node=2", worker,
                  env={"DEVSAN_OPTIONS": f"sim=2:out={tmp_path / 'out'}"})
    found = findings(machine.venv / "bin/devsan", tmp_path / "out")
    assert [finding["where"] for finding in found] == [("worker.py", 4)] * len(found) and found, run.stderr


@pytest.mark.slow
def test_uninstalling_leaves_nothing(machine):
    subprocess.run([machine.venv / "bin/python", "-m", "pip", "uninstall", "-q", "-y", "devsan"], check=True)
    left = [path for path in machine.venv.rglob("*devsan*")]
    assert not left
