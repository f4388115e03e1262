"""`devsan build` against a small stand-in for torch and with a compiler that only counts, so that it takes no time."""

import os
import pathlib
import pty
import re
import shutil
import signal
import stat
import subprocess
import sys
import time

import pytest

from harness import LEAKING

CPP11_SYMBOL = "_ZN3c105ErrorC1ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE"
OLD_SYMBOL = "_ZN3c105ErrorC1ENS_14SourceLocationESs"

# Writes down each call, and makes the file that it is asked for.
COMPILER = """#!/bin/sh
echo "$*" >>"$COMPILER_LOG"
while [ $# -gt 1 ]; do
  [ "$1" = -o ] && out=$2
  shift
done
%s
echo made >"$out"
"""


def make_library(path, symbols=()):
    source = path.with_suffix(".c")
    source.write_text("".join(f'void f{n}(void) __asm__("{symbol}");\nvoid f{n}(void) {{}}\n' for n, symbol in enumerate(symbols)))
    subprocess.run(["cc", "-shared", "-fPIC", "-Wl,--build-id=sha1", "-o", path, source], check=True)


def make_torch(folder, symbol=CPP11_SYMBOL):
    torch = folder / "torch"
    (torch / "lib").mkdir(parents=True)
    (torch / "include/ATen/ops").mkdir(parents=True)
    (torch / "__init__.py").write_text("raise ImportError('devsan build must not import torch')\n")
    (torch / "version.py").write_text("__version__ = '9.8.7+test'\n")
    (torch / "include/ATen/ops/add_ops.h").write_text(
        "struct TORCH_API add_Tensor {\n"
        "  static constexpr const char* name = \"aten::add\";\n"
        "  static constexpr const char* overload_name = \"Tensor\";\n"
        "  static constexpr const char* schema_str = \"add.Tensor(Tensor self, Tensor other) -> Tensor\";\n"
        "  static at::Tensor call(const at::Tensor & self, const at::Tensor & other);\n"
        "};\n")
    make_library(torch / "lib/libtorch_cpu.so")
    make_library(torch / "lib/libc10.so", [symbol])
    return torch


class Builder:
    def __init__(self, devsan, folder):
        self.devsan = devsan
        self.folder = folder
        self.cache = folder / "cache/devsan"
        self.log = folder / "compiler.log"
        self.torch = make_torch(folder)
        self.compiler()
        self.env = {key: value for key, value in os.environ.items() if key not in LEAKING}
        self.env.update(XDG_CACHE_HOME=str(folder / "cache"), CXX=str(folder / "compiler"), PYTHONPATH=str(folder),
                        COMPILER_LOG=str(self.log))

    def compiler(self, does=""):
        path = self.folder / "compiler"
        path.write_text(COMPILER % does)
        path.chmod(0o755)

    def start(self, *args, python=sys.executable, **options):
        return subprocess.Popen([self.devsan, "build", "--python", str(python), *args], env=self.env, cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                **options)

    def __call__(self, *args, **options):
        process = self.start(*args, **options)
        process.stdout_text, process.stderr_text = process.communicate(timeout=60)
        return process

    def calls(self):
        return self.log.read_text().splitlines() if self.log.exists() else []

    def left(self):
        """What lies in the cache, but for the locks."""
        return sorted(p.name for p in self.cache.iterdir() if not p.name.endswith(".lock")) if self.cache.exists() else []


@pytest.fixture
def build(devsan, tmp_path):
    return Builder(devsan, tmp_path)


def test_hooks_are_made_once_and_found_again(build):
    first = build("--sim")
    assert first.returncode == 0, first.stderr_text
    hooks = pathlib.Path(first.stdout_text.strip())
    assert sorted(p.name for p in hooks.iterdir()) == ["libdevsan_sim.so", "libdevsan_torch.so"]
    assert hooks.parent == build.cache and build.left() == [hooks.name]
    assert stat.S_IMODE(build.cache.stat().st_mode) == 0o700
    assert "9.8.7+test" in first.stderr_text
    calls = len(build.calls())

    second = build()
    assert (second.returncode, second.stdout_text, second.stderr_text) == (0, first.stdout_text, "")
    assert len(build.calls()) == calls

    forced = build("--force")
    assert (forced.returncode, forced.stdout_text) == (0, first.stdout_text)
    assert len(build.calls()) == 2 * calls and build.left() == [hooks.name]
    assert sorted(p.name for p in hooks.iterdir()) == ["libdevsan_sim.so", "libdevsan_torch.so"]


def test_simulation_is_compiled_when_it_is_first_wanted(build):
    hooks = pathlib.Path(build().stdout_text.strip())
    assert [p.name for p in hooks.iterdir()] == ["libdevsan_torch.so"]
    made, calls = (hooks / "libdevsan_torch.so").stat(), len(build.calls())

    with_simulation = build("--sim")
    assert with_simulation.stdout_text.strip() == str(hooks) and build.left() == [hooks.name]
    assert sorted(p.name for p in hooks.iterdir()) == ["libdevsan_sim.so", "libdevsan_torch.so"]
    assert (hooks / "libdevsan_torch.so").stat() == made, "the hooks need not be made again"
    assert all("libdevsan_torch" not in call for call in build.calls()[calls:])


def test_what_needs_no_torch_is_linked_from_the_installed_archive(build):
    assert build().returncode == 0
    *compilations, link = build.calls()
    assert "/lib/devsan/inprocess/cxx11/libdevsan_inprocess.a" in link
    assert not any("inprocess" in call for call in compilations)


def test_where_the_archive_is_of_another_abi_its_sources_are_compiled(build):
    make_library(build.torch / "lib/libc10.so", [OLD_SYMBOL])
    assert build().returncode == 0
    *compilations, link = build.calls()
    assert "libdevsan_inprocess.a" not in link
    assert any("/hooks/inprocess/interpreter/python_frames.cpp" in call for call in compilations)


def test_for_a_torch_too_old_to_be_simulated_the_hooks_are_built_alone(build):
    (build.torch / "version.py").write_text("__version__ = '2.7.1+cu128'\n")
    done = build("--sim")
    assert done.returncode == 0, done.stderr_text
    assert [p.name for p in pathlib.Path(done.stdout_text.strip()).iterdir()] == ["libdevsan_torch.so"]
    said = [line for line in done.stderr_text.splitlines() if "simulated" in line]
    assert said == ["devsan: warning: torch 2.7.1+cu128 gets hooks alone: simulated devices need torch 2.11 or later"]


def test_quiet_build_says_nothing(build):
    done = build("--quiet")
    assert (done.returncode, done.stderr_text) == (0, "")


def test_another_torch_has_hooks_of_its_own(build):
    first = build().stdout_text
    make_library(build.torch / "lib/libtorch_cpu.so", ["another"])
    second = build().stdout_text
    assert first != second and len(build.left()) == 2


@pytest.mark.parametrize("symbol, abi", [(CPP11_SYMBOL, "1"), (OLD_SYMBOL, "0")])
def test_strings_are_compiled_as_torchs_own(build, symbol, abi):
    make_library(build.torch / "lib/libc10.so", [symbol])
    assert build().returncode == 0
    compilations = [call for call in build.calls() if " -c " in call]
    assert compilations and all(f"-D_GLIBCXX_USE_CXX11_ABI={abi} " in call for call in compilations)


def test_libraries_name_no_directory_of_torch(build):
    assert build("--sim").returncode == 0
    links = [call for call in build.calls() if "-shared" in call]
    assert len(links) == 2
    for call in links:
        assert "-ltorch_cpu" in call and "-lc10" in call and "rpath" not in call


def test_of_eight_at_once_one_builds_and_the_others_use_it(build):
    alone = build()
    calls = len(build.calls())
    shutil.rmtree(build.cache)
    build.log.unlink()

    processes = [build.start() for _ in range(8)]
    texts = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * 8, texts
    assert {out for out, _ in texts} == {alone.stdout_text}
    assert len(build.calls()) == calls
    assert len(build.left()) == 1


def test_compilers_complaint_is_shown_and_nothing_is_left(build):
    build.compiler('echo "x.cpp:1:1: error: no such thing" >&2; exit 1')
    done = build()
    assert done.returncode == 1 and done.stdout_text == ""
    assert "x.cpp:1:1: error: no such thing" in done.stderr_text
    assert build.left() == []


def test_without_a_compiler_one_line_names_what_to_install(build):
    del build.env["CXX"]
    build.env["PATH"] = str(build.folder)
    done = build()
    assert done.returncode == 1
    assert done.stderr_text.count("\n") == 1 and "install g++" in done.stderr_text
    assert build.left() == []


def test_compiler_that_is_not_there_is_named(build):
    build.env["CXX"] = "/no/such/compiler -pipe"
    done = build()
    assert done.returncode == 1
    assert done.stderr_text.count("\n") == 1 and "/no/such/compiler" in done.stderr_text


def test_compiler_may_have_arguments(build):
    build.env["CXX"] = f"{build.folder / 'compiler'} -pipe"
    assert build().returncode == 0
    assert all(call.startswith("-pipe ") for call in build.calls())


def test_cache_that_others_can_write_is_refused(build):
    build.cache.mkdir(parents=True)
    build.cache.chmod(0o777)
    done = build()
    assert done.returncode == 1
    assert done.stderr_text.count("\n") == 1 and str(build.cache) in done.stderr_text
    assert list(build.cache.iterdir()) == [] and build.calls() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory to another user")
def test_cache_of_another_user_is_refused(build):
    build.cache.mkdir(parents=True, mode=0o700)
    os.chown(build.cache, 12345, 12345)
    done = build()
    assert done.returncode == 1
    assert done.stderr_text.count("\n") == 1 and "another user" in done.stderr_text
    assert list(build.cache.iterdir()) == [] and build.calls() == []


def test_full_disk_leaves_nothing_half_made(build):
    build.cache.parent.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", build.cache.parent], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("a small file system cannot be mounted here")
    try:
        build.compiler('head -c 1000000 /dev/zero >"$out" || exit 1')
        done = build()
        assert done.returncode == 1
        assert "No space left on device" in done.stderr_text
        assert build.left() == []
    finally:
        subprocess.run(["umount", build.cache.parent], check=True)


def wait_for(condition):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.05)
    raise AssertionError("this has not come about in 30 seconds")


def compilers(build):
    """Processes of the stand-in compiler that are alive."""
    alive = []
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if str(build.folder / "compiler").encode() in (process / "cmdline").read_bytes().split(b"\0"):
                alive.append(process.name)
        except OSError:
            pass
    return alive


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_build_cleans_up(build, number):
    build.compiler("sleep 1000")
    process = build.start()
    wait_for(build.calls)
    process.send_signal(number)
    process.communicate(timeout=60)
    assert process.returncode == -number
    assert build.left() == []
    wait_for(lambda: not compilers(build))


def test_build_after_one_that_was_killed(build):
    build.compiler("sleep 1000")
    process = build.start()
    wait_for(build.calls)
    process.kill()
    process.communicate(timeout=60)
    assert len(build.left()) == 1, "the folder of the killed build"
    wait_for(lambda: not compilers(build))
    build.compiler()
    done = build()
    assert done.returncode == 0, done.stderr_text
    assert build.left() == [pathlib.Path(done.stdout_text.strip()).name]


def test_progress_is_redrawn_on_a_terminal(build):
    build.env["TERM"] = "xterm"
    make_library(build.torch / "lib/libc10.so", [OLD_SYMBOL])  # no archive for it, so there is much to compile
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(build.devsan, ["devsan", "build", "--python", sys.executable], build.env)
    seen = b""
    try:
        while chunk := os.read(terminal, 4096):
            seen += chunk
    except OSError:
        pass  # a terminal ends so
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    os.close(terminal)
    steps = [(int(done), int(total)) for done, total in re.findall(rb"\r\x1b\[K[^\r]*?(\d+) of (\d+)", seen)]
    assert len(steps) > 3 and steps == sorted(set(steps))
    assert steps[0][0] == 0 and steps[-1][0] == steps[-1][1]


@pytest.mark.parametrize("python, complaint", [
    ("/no/such/python", "/no/such/python"), ("no-such-python", "no-such-python"),
    (shutil.which("true"), "not a Python"), (shutil.which("cat"), "not a Python"),
])
def test_what_is_no_python_is_told_in_one_line(build, python, complaint):
    done = build(python=python)
    assert done.returncode == 1
    assert done.stderr_text.count("\n") == 1 and complaint in done.stderr_text
    assert not build.cache.exists()


def test_python_without_torch_is_told_in_one_line(build):
    bare = build.folder / "python"
    bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "$@"\n')
    bare.chmod(0o755)
    done = build(python=bare)
    assert done.returncode == 1
    assert done.stderr_text == f"devsan: {bare} has no torch\n"


def run(build, *command, **options):
    return subprocess.run([build.devsan, "run", *options.pop("flags", ()), "--", *command], env=build.env,
                          cwd=build.folder, capture_output=True, text=True, timeout=60)


def test_first_run_builds_the_hooks_by_itself(build):
    first = run(build, sys.executable, "-c", "print('hello')")
    assert (first.returncode, first.stdout) == (0, "hello\n")
    assert "9.8.7+test" in first.stderr and len(build.left()) == 1
    second = run(build, sys.executable, "-c", "print('hello')")
    assert (second.returncode, second.stdout, second.stderr) == (0, "hello\n", "")


def test_run_goes_on_when_the_hooks_cannot_be_built(build):
    build.env["CXX"] = "/no/such/compiler"
    done = run(build, sys.executable, "-c", "import sys; sys.exit(5)")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and "/no/such/compiler" in done.stderr
    assert run(build, sys.executable, "-c", "", flags=["--quiet"]).stderr == ""


def test_run_builds_nothing_when_it_is_turned_off(build):
    build.env["DEVSAN_OPTIONS"] = "enabled=0"
    done = run(build, sys.executable, "-c", "print('hello')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")
    assert build.calls() == []
