"""In a process without torch libdevsan.so changes nothing that can be seen, and costs next to nothing."""

import re
import shutil
import subprocess
import sys

import pytest

from preload_toys import preload, toys  # noqa: F401 (fixtures)

SEES_ITSELF = """
import os, sys, threading
print(sorted(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), threading.active_count())
print(sorted(k for k in os.environ if k != "LD_PRELOAD"), os.getcwd(), sys.argv)
print([l for l in open("/proc/self/status") if l.startswith(("Sig", "Shd", "Threads", "Seccomp"))])
"""
CHILDREN = """
import multiprocessing, subprocess, sys
def work(x):
    print("in", x, file=sys.stderr, flush=True)
    return x * x
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print(method, pool.map(work, [1, 2, 3]))
    print(subprocess.run(["sh", "-c", "echo out; exit 4"], capture_output=True))
"""


@pytest.mark.parametrize("command", [
    ["ls", "-la", "/usr"], ["ls", "/none"], ["bash", "-c", "echo out; echo err >&2; exit 3"], ["bash", "-c", "kill -9 $$"],
    ["bash", "-c", "(echo sub; exec echo replaced) | cat; set | grep -v LD_PRELOAD | grep -c DEVSAN"],
    [sys.executable, "-c", "pass"], [sys.executable, "-c", SEES_ITSELF], [sys.executable, "-c", "import os; os._exit(9)"],
    [sys.executable, "-c", "raise KeyError('x')"], [sys.executable, "-c", "import ctypes; ctypes.CDLL('libnone.so')"]],
    ids=lambda command: " ".join(command)[:40].strip())
@pytest.mark.parametrize("options", [{}, {"DEVSAN_OPTIONS": "sim=2:out=here:nonsense=1"}], ids=["bare", "options"])
def test_a_process_without_torch_is_what_it_was(preload, command, options):
    plain = preload.plain(*command, env=options)
    assert preload.run(*command, options=None, env=options) == plain
    assert preload.files() == []


def test_children_without_torch_are_what_they_were(preload):
    program = preload.folder / "children.py"
    program.write_text(CHILDREN)
    plain = preload.plain(sys.executable, "-B", program)
    assert plain.status == 0 and "spawn [1, 4, 9]" in plain.stdout
    assert preload.run(sys.executable, "-B", program, options=None) == plain
    assert preload.files() == ["children.py"]


def test_it_makes_few_system_calls_and_starts_no_thread(preload, toys):
    if shutil.which("strace") is None:
        pytest.skip("no strace")
    empty = preload.folder.parent / "libempty.so"
    shutil.copy(toys.shared("libempty.so", "empty.c"), empty)

    def calls(library):
        log = preload.folder.parent / "strace.txt"
        done = subprocess.run(["strace", "-f", "-o", log, "-E", f"LD_PRELOAD={library}", "ls", "/"],
                              capture_output=True, text=True)
        if done.returncode != 0:
            pytest.skip(f"strace does not work here: {done.stderr}")
        return re.findall(r"^\d+ +(\w+)\(", log.read_text(), re.MULTILINE)

    with_devsan, without = calls(preload.library), calls(empty)
    assert len(with_devsan) - len(without) <= 10
    assert with_devsan.count("clone") == without.count("clone") and "clone3" not in with_devsan
    assert with_devsan.count("openat") == without.count("openat")


def test_it_needs_nothing_but_the_c_library(preload):
    dynamic = subprocess.run(["readelf", "-dW", preload.library], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic))
    assert needed <= {"libc.so.6", "ld-linux-x86-64.so.2", "libdl.so.2"}


def test_it_shows_only_what_it_interposes_and_what_the_hooks_call(preload):
    symbols = subprocess.run(["nm", "-D", "--defined-only", preload.library], capture_output=True, text=True,
                             check=True).stdout.split("\n")
    names = {line.split()[2] for line in symbols if line}
    recorder = {name for name in names if re.match(r"_ZNK?6devsan5trace8Recorder", name)}
    assert recorder
    assert names - recorder == {
        "dlopen", "dlmopen", "dlsym", "dlvsym", "__cxa_atexit", "_exit", "_Exit", "quick_exit", "execve", "execv", "execvp",
        "execvpe", "execl", "execlp", "execle", "fexecve", "execveat", "wait", "waitpid", "wait3", "wait4", "waitid",
        "devsan_thread_block", "devsan_set_enabled", "devsan_scope_kind", "devsan_scope_open", "devsan_scope_close"}
