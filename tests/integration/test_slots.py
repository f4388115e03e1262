"""Hooks that were compiled before devsan was installed: which torch gets them, under `devsan run` and under the bare
preload, and what is said when they do not fit."""

import os
import shutil
import subprocess

import pytest

from harness import LEAKING
from installations import Installation, git_version, torch_of, torch_with

PROGRAM = "import torch; print((torch.ones(3) + 1).sum().item())"
PRINTED = "6.0\n"


@pytest.fixture
def installed(devsan, python, tmp_path):
    return Installation(devsan, python, tmp_path / "prefix")


class Machine:
    """A machine without hooks in its cache and without a compiler, and an installation with a slot."""

    def __init__(self, installed, python, folder):
        self.installed = installed
        self.python = python
        self.folder = folder
        self.env = {key: value for key, value in os.environ.items() if key not in LEAKING}
        self.env.update(XDG_CACHE_HOME=str(folder / "cache"), TMPDIR=str(folder), CXX="/no/such/compiler")

    def call(self, *words, env=None):
        return subprocess.run(list(map(str, words)), env={**self.env, **(env or {})}, cwd=self.folder, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, timeout=120)

    def build(self, *flags):
        return self.call(self.installed.devsan, "build", "--python", self.python, *flags)

    def run(self, preload, program=PROGRAM):
        """The program by `devsan run`, or with the preload alone, and how many traces it left."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        command = [self.python, "-c", program]
        if preload:
            library = self.call(self.installed.devsan, "lib").stdout.strip()
            done = self.call(*command, env={"LD_PRELOAD": library, "DEVSAN_OPTIONS": f"out={out}"})
        else:
            done = self.call(self.installed.devsan, "run", "--out", out, "--", *command)
        return done, len(list(out.glob("*.devsan")))


@pytest.fixture
def machine(installed, python, tmp_path):
    return Machine(installed, python, tmp_path)


both_ways = pytest.mark.parametrize("preload", [False, True], ids=["devsan run", "preload"])


def check_passed_over(machine, preload, *words):
    """The program runs as without devsan, and one line says what is wrong."""
    done, traces = machine.run(preload)
    assert (done.returncode, done.stdout, traces) == (0, PRINTED, 0)
    first = [line for line in done.stderr.splitlines() if all(word in line for word in words)]
    assert len(first) == 1 and first[0].startswith("devsan: "), done.stderr
    # The other says that there are no hooks then, and what to do about it.
    assert len(done.stderr.splitlines()) == 2, done.stderr


@both_ways
def test_a_torch_whose_commit_the_index_names_is_traced_without_a_compiler(machine, preload):
    done, traces = machine.run(preload)
    assert (done.returncode, done.stdout, done.stderr, traces) == (0, PRINTED, "", 1)
    assert not (machine.folder / "cache").exists()


def test_build_prints_the_slot(machine):
    done = machine.build()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{machine.installed.slot}\n", "")


def test_devices_are_simulated_by_a_slot(machine, torch_version):
    if torch_version < (2, 11):
        pytest.skip("devices are not simulated for so old a torch")
    done = machine.call(machine.installed.devsan, "run", "--sim", "2", "--out", machine.folder / "out", "--",
                        machine.python, "-c", "import torch; print(torch.cuda.device_count())")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr


@both_ways
def test_a_library_that_is_cut_off_is_passed_over(machine, preload):
    os.truncate(machine.installed.slot / "libdevsan_torch.so", 100_000)
    check_passed_over(machine, preload, str(machine.installed.slot), "libdevsan_torch.so is incomplete")


@both_ways
def test_an_index_of_other_sources_is_passed_over(machine, preload, python):
    machine.installed.write_index(git_version(torch_of(python)), sources="0.1.0 0000000000000000")
    check_passed_over(machine, preload, str(machine.installed.hooks), "other sources")


@both_ways
def test_a_slot_that_needs_what_torch_lacks_is_passed_over(machine, preload):
    library = machine.installed.slot / "libdevsan_torch.so"
    content = library.read_bytes()
    symbol = b"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE"
    assert symbol in content
    library.write_bytes(content.replace(symbol, symbol.replace(b"add_", b"adx_")))
    check_passed_over(machine, preload, str(machine.installed.slot), "torch has no _ZN2at4_ops10adx_Tensor")


@both_ways
def test_another_commit_of_the_same_version_gets_no_slot(machine, preload):
    machine.installed.write_index("0" * 40)
    done, traces = machine.run(preload)
    assert (done.returncode, done.stdout, traces) == (0, PRINTED, 0)
    assert len(done.stderr.splitlines()) == 1 and "slot" not in done.stderr.replace("with a slot for it", "")


@both_ways
def test_folders_of_an_administrator_come_first(machine, preload):
    key = machine.installed.cached.name
    given = machine.folder / "given" / key
    shutil.copytree(machine.installed.slot, given)
    for path in (given, given.parent):
        path.chmod(0o555)
    os.truncate(machine.installed.slot / "libdevsan_torch.so", 100)
    machine.env["DEVSAN_HOOKS_PATH"] = f"/nonexistent:{given.parent}"
    done, traces = machine.run(preload)
    assert (done.returncode, done.stdout, done.stderr, traces) == (0, PRINTED, "", 1)
    assert machine.build().stdout == f"{given}\n"


@both_ways
def test_a_folder_of_an_administrator_that_others_can_write_is_passed_over(machine, preload):
    given = machine.folder / "given"
    shutil.copytree(machine.installed.slot, given / machine.installed.cached.name)
    given.chmod(0o777)
    machine.env["DEVSAN_HOOKS_PATH"] = str(given)
    done, traces = machine.run(preload)
    assert (done.returncode, done.stdout, traces) == (0, PRINTED, 1)
    assert done.stderr.count("\n") == 1 and "DEVSAN_HOOKS_PATH" in done.stderr


def test_the_library_finds_its_slots_through_a_link(machine):
    link = machine.folder / "elsewhere.so"
    link.symlink_to(machine.installed.prefix / "lib/devsan/libdevsan.so")
    done = machine.call(machine.python, "-c", PROGRAM, env={"LD_PRELOAD": str(link), "DEVSAN_OPTIONS": "out=traces"})
    assert (done.returncode, done.stdout, done.stderr) == (0, PRINTED, "")
    assert len(list((machine.folder / "traces").glob("*.devsan"))) == 1


# ---- torches that cannot be served

@both_ways
def test_a_torch_that_is_too_old_is_told_of_and_the_program_runs(machine, preload):
    machine.env["PYTHONPATH"] = str(torch_with(machine.python, machine.folder / "old", __version__="2.5.1+cpu"))
    done, traces = machine.run(preload, PROGRAM + "; raise SystemExit(5)")
    assert (done.returncode, done.stdout, traces) == (5, PRINTED, 0)
    assert "torch 2.5.1+cpu" in done.stderr and "2.6 or later is needed" in done.stderr
    assert done.stderr.count("\n") == 1


# ---- devsan --version

def test_version_names_the_hooks_of_python3(machine, python):
    path = f"{python.parent}:{machine.env['PATH']}"
    done = machine.call(machine.installed.devsan, "--version", env={"PATH": path})
    first, second = done.stdout.splitlines()
    assert first.startswith("devsan ") and done.stderr == ""
    assert second.startswith("hooks: for torch ") and second.endswith(f": slot {machine.installed.slot}")
    shutil.rmtree(machine.installed.hooks)
    done = machine.call(machine.installed.devsan, "--version", env={"PATH": path})
    assert done.stdout.splitlines()[1].endswith(": would be compiled at the first run")


def test_version_is_printed_by_an_installation_that_is_not_whole(machine, python):
    (machine.installed.prefix / "lib/devsan/libdevsan.so").unlink()
    path = f"{python.parent}:{machine.env['PATH']}"
    done = machine.call(machine.installed.devsan, "--version", env={"PATH": path})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("devsan ") and "libdevsan.so is missing" in done.stdout


def test_version_is_printed_without_a_python(machine):
    done = machine.call(machine.installed.devsan, "--version", env={"PATH": str(machine.folder)})
    assert done.returncode == 0 and done.stderr == ""
    first, second = done.stdout.splitlines()
    assert first.startswith("devsan ") and second == "hooks: none, for there is no python3 here"


# ---- simulated devices that cannot be had

def simulate(machine, *command, env=None):
    out = machine.folder / "sim-out"
    done = machine.call(machine.installed.devsan, "run", "--sim", "2", "--out", out, "--", *command, env=env)
    return done, out.exists()


def check_refused(machine, *words, command=None, env=None):
    """Nothing was started, and one line says why; without --sim the same command runs."""
    command = command or [machine.python, "-c", "print('started')"]
    done, left = simulate(machine, *command, env=env)
    assert (done.returncode, done.stdout, left) == (2, "", False), done
    assert done.stderr.startswith("devsan: run: --sim cannot be had: ") and done.stderr.count("\n") == 1
    assert all(word in done.stderr for word in words), done.stderr
    plain = machine.call(machine.installed.devsan, "run", "--out", machine.folder / "plain", "--", *command, env=env)
    assert (plain.returncode, plain.stdout) == (0, "started\n")


def test_without_hooks_and_compiler_simulation_is_refused(machine):
    shutil.rmtree(machine.installed.hooks)
    check_refused(machine, "/no/such/compiler")


def test_a_slot_without_simulation_refuses_it(machine):
    (machine.installed.slot / "libdevsan_sim.so").unlink()
    check_refused(machine, str(machine.installed.slot), "torch 2.11 or later")


def test_a_torch_that_is_too_old_refuses_simulation(machine):
    folder = torch_with(machine.python, machine.folder / "old", __version__="2.5.1+cpu")
    check_refused(machine, "torch 2.5.1+cpu", env={"PYTHONPATH": str(folder)})


def bare_python(machine):
    """A Python without torch."""
    path = machine.folder / "bare/python3"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nexec "{machine.python}" -I -S "$@"\n')
    path.chmod(0o755)
    return path


def test_a_python_without_torch_refuses_simulation(machine):
    python = bare_python(machine)
    check_refused(machine, f"{python} has no torch", command=[python, "-c", "print('started')"])


@pytest.mark.parametrize("name, value, word", [
    ("Py_GIL_DISABLED", 1, "free-threaded"), ("HOST_GNU_TYPE", "x86_64-pc-linux-musl", "musl")])
def test_a_python_that_is_not_supported_refuses_simulation(machine, name, value, word):
    folder = machine.folder / "site"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(f"import sysconfig\nsysconfig.get_config_vars()[{name!r}] = {value!r}\n")
    check_refused(machine, word, env={"PYTHONPATH": str(folder)})


def test_hooks_that_are_named_and_missing_refuse_simulation(machine):
    check_refused(machine, "/nonexistent/libdevsan_torch.so", env={"DEVSAN_OPTIONS": "hooks=/nonexistent"})


def test_a_command_that_starts_others_is_not_refused(machine):
    python = bare_python(machine)
    path = f"{python.parent}:{machine.env['PATH']}"
    script = machine.folder / "conda"
    script.write_text(f"#!{python}\nprint('started')\n")
    script.chmod(0o755)
    for command in (["sh", "-c", "echo started"], ["env", "A=1", "python3", "-c", "print('started')"], [script]):
        done, _ = simulate(machine, *command, env={"PATH": path})
        assert (done.returncode, done.stdout) == (0, "started\n"), done


def test_a_python_without_torch_is_told_of_when_nothing_was_traced(machine):
    python = bare_python(machine)
    done = machine.call(machine.installed.devsan, "run", "--", python, "-c", "raise SystemExit(3)")
    assert (done.returncode, done.stderr) == (3, f"devsan: nothing was traced: {python} has no torch\n")


def test_without_hooks_and_compiler_the_user_is_told_once(machine):
    shutil.rmtree(machine.installed.hooks)
    done, traces = machine.run(preload=False)
    assert (done.returncode, done.stdout, traces) == (0, PRINTED, 0)
    assert done.stderr.count("\n") == 1 and "/no/such/compiler" in done.stderr
