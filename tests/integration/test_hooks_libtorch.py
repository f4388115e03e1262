"""A program that links LibTorch, without Python."""

import pathlib
import shutil
import subprocess

import pytest
from harness import ROOT, shell_status, view

SOURCE = ROOT / "tests/integration/hooks_cpp_program.cpp"


@pytest.fixture(scope="module")
def program(python, tmp_path_factory):
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    code = "import torch, pathlib; print(pathlib.Path(torch.__file__).parent, int(torch.compiled_with_cxx11_abi()))"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    folder, abi = text.rsplit(" ", 1)
    folder = pathlib.Path(folder)
    target = tmp_path_factory.mktemp("libtorch") / "program"
    subprocess.run(["g++", "-std=c++20", "-O0", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-isystem", folder / "include",
                    "-isystem", folder / "include/torch/csrc/api/include", SOURCE, "-o", target, f"-L{folder}/lib",
                    "-Wl,--no-as-needed", "-ltorch", "-ltorch_cpu", "-lc10", "-pthread", f"-Wl,-rpath,{folder}/lib"],
                   check=True)
    return target


def run(devsan, program, what, out, *options):
    plain = subprocess.run([program, what], capture_output=True, text=True, timeout=120)
    watched = subprocess.run([devsan, "run", "--out", out, *options, "--", program, what], capture_output=True, text=True,
                             timeout=300)
    return plain, watched


def own_lines(text):
    """The program's words, without devsan's and without the native backtrace, whose addresses differ."""
    return [line for line in text.splitlines() if "what():" in line or line.startswith("terminate")]


@pytest.mark.parametrize("what", ["", "thread", "noexcept"])
def test_an_uncaught_error_aborts_as_without_devsan_and_is_found_with_a_native_stack(devsan, program, tmp_path,
                                                                                     what):
    plain, watched = run(devsan, program, what, tmp_path / "out")
    assert plain.returncode == -6
    assert shell_status(watched.returncode) == 134
    assert own_lines(watched.stderr) == own_lines(plain.stderr) != []
    [finding] = [f for f in view(devsan, tmp_path / "out")["findings"] if f["raised"]]
    assert (finding["where"], finding["severity"], finding["handled"]) == (None, "error", False)
    assert any(frame["module"].endswith("program") for frame in finding["native_stack"])


def test_a_caught_error_leaves_output_and_status(devsan, program, tmp_path):
    plain, watched = run(devsan, program, "caught", tmp_path / "out")
    assert (plain.returncode, plain.stdout) == (watched.returncode, watched.stdout)
    assert plain.returncode == 3
    assert len([f for f in view(devsan, tmp_path / "out")["findings"] if f["raised"]]) == 1


def test_operators_in_static_destructors_run(devsan, program, tmp_path):
    plain, watched = run(devsan, program, "exit", tmp_path / "out")
    assert (plain.returncode, plain.stdout) == (4, "sum at exit 3\n")
    assert (watched.returncode, watched.stdout) == (4, "sum at exit 3\n")


@pytest.mark.parametrize("what", ["", "thread"])
def test_halt_ends_with_66_where_the_program_would_abort(devsan, program, tmp_path, what):
    _, watched = run(devsan, program, what, tmp_path / "out", "--halt")
    assert watched.returncode == 66
    assert "ending the process with status 66" in watched.stderr
    report = view(devsan, tmp_path / "out")
    assert [process["close"] for process in report["run"]["processes"]] == ["halted"]
    assert len([finding for finding in report["findings"] if finding["raised"]]) == 1


def test_halt_passes_over_what_a_libtorch_program_catches(devsan, program, tmp_path):
    plain, watched = run(devsan, program, "caught", tmp_path / "out", "--halt")
    assert (watched.returncode, watched.stdout) == (plain.returncode, plain.stdout)
