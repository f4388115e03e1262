"""Small C programs and libraries for the tests of preload/: a stand-in for torch, hooks for it, programs that use it."""

import functools
import os
import pathlib
import shutil
import struct
import subprocess

import pytest

from harness import LEAKING, ROOT, shell_status

SOURCES = ROOT / "tests/integration/preload_programs"

CLOSE_MARK_OFFSET = 44  # in FileHeader
OPEN, EXITED, QUICK_EXITED, EXECUTED = range(4)


def find_library():
    """libdevsan.so: that named by DEVSAN_LIB, or that of the devsan which is tested."""
    if "DEVSAN_LIB" in os.environ:
        return pathlib.Path(os.environ["DEVSAN_LIB"])
    devsan = os.environ.get("DEVSAN", ROOT / ".venv/bin/devsan")
    return pathlib.Path(subprocess.run([devsan, "lib"], capture_output=True, text=True, check=True).stdout.strip())


class Toys:
    """Compiles what is in preload_programs/, each once, into one directory with a space in its name."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)

    @functools.cache
    def build(self, output, source, *flags):
        compiler = shutil.which("g++" if source.endswith(".cpp") else "gcc")
        if compiler is None:
            pytest.skip("no C compiler")
        path = self.folder / output
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [compiler, "-g", "-w", f"-I{ROOT}", SOURCES / source, "-o", path, *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return path

    def shared(self, output, source, *flags):
        return self.build(output, source, "-shared", "-fPIC", *flags)

    @property
    def torch(self):
        """The directory of a library called libtorch_cpu.so, with one operator."""
        return self.shared("torch/lib/libtorch_cpu.so", "torch.c", "-Wl,-soname,libtorch_cpu.so",
                           "-Wl,--build-id").parent

    @property
    def link_torch(self):
        return (f"-L{self.torch}", "-ltorch_cpu", f"-Wl,-rpath,{self.torch}")

    @property
    def hooks(self):
        """The directory of hooks for that library: they add 1000 to what the operator gives."""
        return self.shared("hooks/libdevsan_torch.so", "hooks.cpp", "-std=c++20", *self.link_torch).parent

    @property
    def linked(self):
        """A program that is linked with that library. What it does: see linked.c."""
        return self.build("linked", "linked.c", *self.link_torch)


class Ended:
    def __init__(self, done):
        self.status = shell_status(done.returncode)
        self.stdout = done.stdout
        self.stderr = done.stderr

    def __iter__(self):
        return iter((self.status, self.stdout, self.stderr))

    def __eq__(self, other):
        return tuple(self) == tuple(other)

    def __repr__(self):
        return f"status {self.status}\n{self.stdout}\n{self.stderr}"


class Preload:
    """Runs commands with and without libdevsan.so in LD_PRELOAD, in a directory of their own."""

    def __init__(self, library, toys, folder):
        self.library = library
        self.toys = toys
        self.folder = folder

    def plain(self, *command, **settings):
        return self.run(*command, preload=(), options=None, **settings)

    def run(self, *command, preload=None, options=(), env=None, cwd=None, **settings):
        """`options` go into DEVSAN_OPTIONS, with the toy hooks before them; None leaves the variable out."""
        environment = {key: value for key, value in os.environ.items() if key not in LEAKING}
        if options is not None:
            environment["DEVSAN_OPTIONS"] = ":".join([f'hooks="{self.toys.hooks}"', *options])
        preloaded = [self.library] if preload is None else preload
        if preloaded:
            environment["LD_PRELOAD"] = ":".join(map(str, preloaded))
        environment.update(env or {})
        settings.setdefault("stdin", subprocess.DEVNULL)
        if "stderr" not in settings:
            settings["stderr"] = subprocess.PIPE
        done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, text=True, errors="replace",
                              env=environment, cwd=cwd or self.folder, timeout=120, **settings)
        return Ended(done)

    def traces(self):
        return sorted(self.folder.rglob("*.devsan"))

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


def close_mark(trace):
    return struct.unpack_from("<I", trace.read_bytes()[: CLOSE_MARK_OFFSET + 4], CLOSE_MARK_OFFSET)[0]


@pytest.fixture(scope="session")
def toys(tmp_path_factory):
    return Toys(tmp_path_factory.mktemp("toys") / "with a space")


@pytest.fixture
def preload(toys, tmp_path):
    folder = tmp_path / "work here"
    folder.mkdir()
    library = find_library()
    # LD_PRELOAD is split at spaces, so the library itself cannot lie behind one; the launcher sees to that.
    assert " " not in str(library)
    return Preload(library, toys, folder)
