"""devsan reads the interpreter's frames wherever it is asked to, and no frames of another layout."""

import ast
import os
import pathlib
import shutil
import subprocess

import pytest

from harness import ROOT

PROGRAMS = ROOT / "tests/integration/place_programs"
SUPPORTED = range(10, 15)


def pythons():
    """Every Python at hand that devsan supports: of the machine, of pyenv, and that of the tests."""
    found = {}
    installed = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv")) / "versions"
    for path in [pathlib.Path("/usr/bin/python3"), *sorted(installed.glob("3.*/bin/python3"))]:
        code = "import sys; print(sys.version_info.minor, sys.version.replace(' ', '_'))"
        done = subprocess.run([path, "-IS", "-c", code], capture_output=True, text=True) if path.exists() else None
        if done is not None and done.returncode == 0 and int(done.stdout.split()[0]) in SUPPORTED:
            found[done.stdout] = path
    return list(found.values())


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    target = tmp_path_factory.mktemp("frame_check") / "frame_check.so"
    sources = [ROOT / "hooks/inprocess/interpreter" / f"{name}.cpp" for name in ("frame_check", "python_frames", "python_api")]
    subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-I{ROOT}", PROGRAMS / "frame_check.cpp", *sources,
                    "-o", target], check=True)
    return target


@pytest.mark.parametrize("interpreter", pythons(), ids=str)
def test_frames_are_understood_at_every_place_and_a_wrong_layout_is_refused_without_harm(library, interpreter):
    done = subprocess.run([interpreter, PROGRAMS / "frame_check.py", library], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"{done.returncode}: {done.stderr}"
    refused, wrong, without_gil = done.stdout.splitlines()
    names, count = refused.rsplit(" ", 1)
    assert ast.literal_eval(names) == [] and int(count) >= 15
    accepted = ast.literal_eval(wrong)
    # In 3.10 the word behind it leads to the same frames, by one frame more.
    assert sum(map(len, accepted.values())) <= 1, accepted
    assert without_gil == "True"
