"""The real torch, in Python: its operators are reached in the process and in all kinds of children."""

import subprocess

import pytest

from preload_toys import preload, toys  # noqa: F401 (fixtures)

IN_CHILDREN = """
import ctypes, multiprocessing, os, subprocess, sys, torch

def counted():
    if len(sys.argv) < 2 or sys.argv[1] == "plain":
        return "some"
    hooks = ctypes.CDLL(sys.argv[1])
    return "some" if ctypes.c_long.in_dll(hooks, "calls").value > 0 else "none"

def work(x):
    return (torch.ones(2) + x).tolist(), counted()

if __name__ == "__main__":
    print("here", work(1), flush=True)
    for method in ("fork", "spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(2) as pool:
            print(method, pool.map(work, [1, 2, 3]), flush=True)
    child = os.fork()
    if child == 0:
        print("forked", work(4), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    loader = torch.utils.data.DataLoader(range(4), batch_size=2, num_workers=1)
    print([batch.tolist() for batch in loader], flush=True)
    code = "import torch; print((torch.ones(1) + 1).item())"
    print(subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True), flush=True)
    raise SystemExit(5)
"""


@pytest.fixture(scope="module")
def torch_libraries(python):
    code = "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip() + "/lib"


def test_operators_are_reached_in_children_of_every_kind(preload, toys, python, torch_libraries):
    hooks = toys.shared("counting/libdevsan_torch.so", "counting_hooks.cpp", "-std=c++20", f"-L{torch_libraries}",
                        "-ltorch_cpu", "-Wl,--unresolved-symbols=ignore-in-shared-libs")
    program = preload.folder / "children.py"
    program.write_text(IN_CHILDREN)
    command = (python, "-B", "-W", "ignore", program)
    plain = preload.plain(*command, "plain")
    assert plain.status == 5
    # No operator of these hooks asks for a trace of a forked child's own.
    assert preload.run(*command, hooks, options=[f'hooks="{hooks.parent}"', "quiet=1"]) == plain
    traces = preload.traces()
    assert len({trace.parent for trace in traces}) == 1
    assert traces[0].parent.parent == preload.folder / "devsan-out"


def test_the_line_about_missing_hooks_names_the_python_that_has_this_torch(preload, python):
    cache = preload.folder.parent / "cache"
    command = (python, "-B", "-W", "ignore", "-c", "import torch; raise SystemExit(torch.ones(3).sum().int().item())")
    run = preload.run(*command, options=None, env={"XDG_CACHE_HOME": str(cache)})
    assert (run.status, run.stdout) == (3, "")
    assert run.stderr.startswith("devsan: no hooks for the torch at ") and run.stderr.count("\n") == 1
    named = run.stderr.split("devsan build --python ")[1].strip()
    found = subprocess.run([named, "-c", "import torch; print(torch.__file__)"], capture_output=True, text=True)
    assert found.returncode == 0 and found.stdout.strip().rsplit("/", 1)[0] in run.stderr
    assert preload.files() == [] and not cache.exists()
