"""Runs whole processes with and without devsan, and reads what they left behind."""

import dataclasses
import functools
import json
import os
import pathlib
import re
import subprocess
import textwrap
import zlib

import pytest

from zygotes import zygote

ROOT = pathlib.Path(__file__).resolve().parents[2]

# What a test's own environment must not leak into the processes that it compares.
LEAKING = ("DEVSAN_OPTIONS", "LD_PRELOAD", "PYTHONPATH", "PYTHONSTARTUP", "RANK", "LOCAL_RANK", "WORLD_SIZE")


def shell_status(returncode):
    """The exit status as a shell tells it: 128 + the signal's number for a process that a signal ended."""
    return 128 - returncode if returncode < 0 else returncode


def view(devsan, *words):
    """The report of trace files or directories, with options of the command, as `devsan view --json` gives it."""
    done = subprocess.run([devsan, "view", *map(str, words), "--json"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, f"devsan view ended {done.returncode}: {done.stderr}"
    return json.loads(done.stdout)


def timeline(page):
    """What a page knows of the steps of the only process that has any."""
    (text,) = re.findall(r'<script type="application/json" data-part="timeline">(.*?)</script>', page.read_text(), re.S)
    (steps,) = [one for one in json.loads(text)["processes"] if one]
    return steps


# The first torch that has the interfaces the simulation is made of.
OLDEST_SIMULATED = (2, 11)


@functools.cache
def torch_version(python):
    """(major, minor) of that Python's torch."""
    code = "import importlib.metadata as m; print(m.version('torch'))"
    text = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    return tuple(int(part) for part in text.split(".")[:2])


def need_simulated_devices(python):
    """Skips the test where that Python's torch is older than OLDEST_SIMULATED."""
    if torch_version(python) < OLDEST_SIMULATED:
        pytest.skip("devices are simulated from torch {}.{} on".format(*OLDEST_SIMULATED))


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


# Which programs are forks of a process that has imported torch, rather than started: those of the tests in files whose
# names begin so, where what the programs do is tested, not how they begin and end; and of these all but one in so many,
# which show that what holds for a fork holds for a program that is started.
FILES_WITH_FORKS = ("test_programs", "test_hooks_", "test_hidden_", "test_control_", "test_memory_", "test_out_of_memory",
                    "test_report_schema", "test_rules", "test_expectations", "test_sim_")
STARTS_AMONG_FORKS = 10

# Options of `devsan run` that a fork can have too, and what they are in DEVSAN_OPTIONS.
OPTIONS_OF_FORKS = {"--quiet": "quiet=1", "--sim-memory": "sim_memory={}", "--sim-late-copies": "sim_late_copies=1"}


def settings_of_fork(options):
    """The options in terms of DEVSAN_OPTIONS; None where one of them is for starts alone."""
    settings = []
    words = iter(options)
    for word in words:
        setting = OPTIONS_OF_FORKS.get(word)
        if setting is None:
            return None
        settings.append(setting.format(next(words)) if "{}" in setting else setting)
    return settings


def starts_all_the_same(source):
    """Whether a program, or the test that it is of when it is given by its text, is one of the few."""
    current_test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]
    name = source.stem if isinstance(source, pathlib.Path) else current_test
    return zlib.crc32(name.encode()) % STARTS_AMONG_FORKS == 0


class Runner:
    """Runs Python programs: `plain`, under a `preload`, or by `devsan run`.

    A program for which nothing is wanted but simulated devices and arguments is a fork of a process that has imported
    torch (zygotes.py), which saves most of its time. `start=True`, for a runner or for one call, has it started by
    `devsan run`: for what the command does besides, such as the summary, and for what a fork of a process with torch is
    not.
    """

    def __init__(self, devsan, python, scratch, start=False):
        self.devsan = devsan
        self.python = python
        self.scratch = scratch
        self.start = start
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

    def fork(self, program, args, settings, timeout):
        """Runs a program in a fork of a process that was started with these settings of devsan."""
        self._count += 1
        out = self.scratch / f"out{self._count}"
        env = self.environment()
        # Which differs from test to test, and matters to none.
        at_start = {key: value for key, value in env.items() if key != "PYTEST_CURRENT_TEST"}
        parent = zygote(self.python, at_start, self.library, settings)
        status, *written = parent.run(program, args, env, out, self.scratch, timeout)
        stdout, stderr = (text.decode(errors="replace").replace("\r\n", "\n") for text in written)
        return Result(shell_status(status), stdout, stderr, out, self.devsan)

    def __call__(self, source, *args, sim=0, preload=False, plain=False, options=(), env=None, out=None, cwd=None,
                 stdin=None, timeout=180, start=False):
        """Runs one program to its end. `options` go to `devsan run`, or with `preload` into DEVSAN_OPTIONS."""
        if sim:
            need_simulated_devices(self.python)
        program = self.program(source)
        special = preload or plain or env or out or cwd or stdin is not None
        settings = settings_of_fork(options)
        if not (special or start or self.start or settings is None or starts_all_the_same(source)):
            return self.fork(program, list(map(str, args)), [*([f"sim={sim}"] if sim else []), *settings], timeout)
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
