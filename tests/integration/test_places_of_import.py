"""Torch is imported at some odd moment, and devsan reads Python's frames all the same."""

import pathlib
import shutil
import subprocess

import pytest

from harness import ROOT, Result, shell_status
from hooks_programs import found_at, line_of

PROGRAMS = ROOT / "tests/integration/place_programs"

WORK = """
def work(torch):
    left = torch.ones(3, device="meta")
    right = torch.ones(3)  # @cause
    try:
        return left + right  # @here
    except RuntimeError:
        print("refused")
    torch.ones(1)
"""

PLACES = {
    "a coroutine that handles an exception": """
import asyncio

async def items():
    try:
        await asyncio.sleep(0)
        raise KeyError
    except KeyError:
        import torch
        yield torch

async def main():
    async for torch in items():
        work(torch)

asyncio.run(main())
""",
    "nested generators": """
def items(depth):
    if depth:
        yield from items(depth - 1)
    else:
        import torch
        yield torch

work(next(items(90)))
""",
    "a thread, in a class body": """
import threading

def run():
    class Body:
        import torch
    modules.append(Body.torch)

modules = []
thread = threading.Thread(target=run)
thread.start()
thread.join()
work(*modules)
""",
}


def check(result, source):
    found = found_at(result, source, "here")
    assert [operand["name"] for operand in found["operands"]] == ["left", "right"]
    assert found["where"]["function"] == "work" and found["handled"]
    assert found["operands"][1]["lineage"][0]["line"] == line_of(source, "cause")
    assert len(result.findings) == 1 and result.report["damage"] == []
    assert "no Python lines" not in result.stderr


@pytest.mark.parametrize("place", PLACES)
def test_torch_is_imported_in(run_python, place):
    source = WORK + PLACES[place]
    result = run_python(source)
    assert (result.status, result.stdout) == (0, "refused\n"), result.stderr
    check(result, source)


@pytest.fixture(scope="module")
def embedding(python, tmp_path_factory):
    """The program of embedding.c, and the arguments that lead it to that Python and its torch."""
    facts = ("import sysconfig as s, importlib.util as u, pathlib as p; "
             "print(s.get_config_var('INCLUDEPY'), s.get_config_var('LIBDIR'), s.get_config_var('VERSION'), "
             "s.get_config_var('Py_ENABLE_SHARED'), p.Path(u.find_spec('torch').origin).parent, sep='\\n')")
    include, folder, version, shared, torch = subprocess.run([python, "-c", facts], capture_output=True, text=True,
                                                             check=True).stdout.splitlines()
    if shared != "1" or not pathlib.Path(include, "Python.h").exists() or shutil.which("gcc") is None:
        pytest.skip("this Python cannot be embedded: no shared library, no headers, or no compiler")
    target = tmp_path_factory.mktemp("embedding") / "embedding"
    subprocess.run(["gcc", f"-I{include}", PROGRAMS / "embedding.c", "-o", target, f"-L{folder}",
                    f"-lpython{version}", f"-Wl,-rpath,{folder}", "-pthread", "-ldl"], check=True)
    return [target, python, f"{torch}/lib/libtorch_cpu.so"]


@pytest.mark.parametrize("thread", ["main", "thread"])
def test_python_is_started_after_torch_was_loaded(devsan, run_python, embedding, tmp_path, thread):
    source = WORK + "import torch\nwork(torch)\n"
    program = run_python.program(source)
    command = [*map(str, embedding), str(program), thread]
    done = subprocess.run([devsan, "run", "--out", tmp_path / "out", "--", *command], capture_output=True, text=True,
                          timeout=180)
    assert (shell_status(done.returncode), done.stdout) == (0, "refused\nended\n"), done.stderr
    check(Result(done.returncode, done.stdout, done.stderr, tmp_path / "out", devsan), source)
