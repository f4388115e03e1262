"""Runs whole processes with and without devsan, and reads what they left behind."""

import dataclasses
import functools
import json
import os
import pathlib
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a test's own environment must not leak into the processes that it compares.
LEAKING = ("DEVSAN_OPTIONS", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "RANK", "LOCAL_RANK", "WORLD_SIZE")


def shell_status(returncode):
    """The exit status as a shell tells it: 128 + the signal's number for a process that a signal ended."""
    return 128 - returncode if returncode < 0 else returncode


def view(devsan, *paths):
    """The report of trace files or directories, as `devsan view --json` gives it."""
    done = subprocess.run([devsan, "view", *map(str, paths), "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"devsan view ended {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


# The first torch that has the interfaces the simulation is made of.
OLDEST_SIMULATED = (2, 11)


@functools.cache
def torch_version(python):
    """(major, minor) of that Python's torch."""
    code = "import importlib.metadata as m; print(m.version('torch'))"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in text.split(".")[:2])


@functools.cache
def is_cuda_build(python):
    """Whether that Python's torch was built with CUDA."""
    code = "import torch; print(torch.version.cuda is not None)"
    done = subprocess.run([python, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip() == "True"


@dataclasses.dataclass
class Result:
    status: int  # as a shell tells it
    stdout: str
    stderr: str
    out: pathlib.Path | None  # directory of the traces; None without devsan
    devsan: pathlib.Path

    @functools.cached_property
    def report(self):
        return view(self.devsan, self.out)

    @property
    def findings(self):
        return self.report["findings"]

    def raised(self):
        """Findings of operators that PyTorch refused."""
        return [f for f in self.findings if f["kind"] == "device-mismatch" and f["raised"]]

    def loud(self):
        """Findings that say something is wrong."""
        return [f for f in self.findings if f["severity"] in ("error", "warning")]


class Runner:
    """Runs Python programs: `plain`, under a `preload`, or by `devsan run`."""

    def __init__(self, devsan, python, scratch):
        self.devsan = devsan
        self.python = python
        self.scratch = scratch
        self._count = 0

    def environment(self, extra=None):
        env = {key: value for key, value in os.environ.items() if key not in LEAKING}
        env.update(extra or {})
        return env

    def program(self, source):
        """The path of a program given by its path or by its text."""
        if isinstance(source, pathlib.Path):
            return source
        self._count += 1
        path = self.scratch / f"program{self._count}.py"
        path.write_text(textwrap.dedent(source))
        return path

    @functools.cached_property
    def library(self):
        return subprocess.run([self.devsan, "lib"], capture_output=True, text=True, check=True).stdout.strip()

    def __call__(self, source, *args, sim=0, preload=False, plain=False, options=(), env=None, out=None, cwd=None,
                 stdin=None, timeout=180):
        """Runs one program to its end. `options` go to `devsan run`, or with `preload` into DEVSAN_OPTIONS."""
        if sim and torch_version(self.python) < OLDEST_SIMULATED:
            pytest.skip("devices are not simulated for so old a torch")
        program = self.program(source)
        command = [str(self.python), str(program), *map(str, args)]
        env = self.environment(env)
        if plain:
            out = None
        else:
            self._count += 1
            out = pathlib.Path(out) if out else self.scratch / f"out{self._count}"
            if preload:
                settings = [f'out="{out}"', *([f"sim={sim}"] if sim else []), *options]
                env.setdefault("DEVSAN_OPTIONS", ":".join(settings))
                env["LD_PRELOAD"] = self.library
            else:
                simulated = ["--sim", str(sim)] if sim else []
                command = [str(self.devsan), "run", *simulated, "--out", str(out), *options, "--", *command]
        done = subprocess.run(command, input=stdin, stdin=None if stdin is not None else subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", env=env, cwd=cwd or self.scratch,
                              timeout=timeout)
        return Result(shell_status(done.returncode), done.stdout, done.stderr, out, self.devsan)
