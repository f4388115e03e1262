"""What a command sees of `devsan run`: nothing but the two variables. Commands without torch, so that it is fast."""

import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

from harness import LEAKING
from terminal import Terminal

# Prints what a process inherits, but for its environment.
INHERITED = """
import json, os, stat
def words(name):
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(name))
print(json.dumps({
    "blocked": words("SigBlk"), "ignored": words("SigIgn"), "group": os.getpgid(0), "session": os.getsid(0),
    "umask": os.umask(0), "directory": os.getcwd(), "nice": os.nice(0),
    "files": sorted(fd for fd in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + fd)),
}))
"""


@pytest.fixture
def environment(tmp_path):
    """Of the test, without what others left in it. Hooks are named, so that none are looked for or built."""
    clean = {key: value for key, value in os.environ.items() if key not in LEAKING}
    return {**clean, "DEVSAN_OPTIONS": f"hooks={tmp_path}"}


@pytest.fixture
def call(devsan, environment, tmp_path):
    def run(*words, program=devsan, env=None, **options):
        options = {"stdin": subprocess.DEVNULL, "capture_output": True, "timeout": 60, **options}
        return subprocess.run([program, *map(str, words)], env={**environment, **(env or {})}, cwd=tmp_path, **options)

    return run


def sh(script):
    return ["run", "--", "sh", "-c", script]


@pytest.mark.parametrize("script, status", [
    ("exit 0", 0), ("exit 3", 3), ("exit 255", 255), ("kill -TERM $$", 128 + 15), ("kill -KILL $$", 128 + 9),
    ("kill -SEGV $$", 128 + 11), ("kill -INT $$", 128 + 2), ("kill -PIPE $$", 128 + 13),
])
def test_exit_status_is_the_commands_own(call, script, status):
    done = call(*sh(script))
    assert (done.returncode, done.stdout, done.stderr) == (status, b"", b"")


def test_directory_is_no_command(call, tmp_path):
    done = call("run", "--", tmp_path)
    assert done.returncode == 126
    assert b"directory" in done.stderr.lower() and str(tmp_path).encode() in done.stderr


def test_bytes_pass_through_unchanged(call):
    data = bytes(range(256)) * 1000
    done = call("run", "--", "cat", stdin=None, input=data)
    assert (done.returncode, done.stdout, done.stderr) == (0, data, b"")


def test_only_the_two_variables_are_added(call, environment):
    plain = call("-0", program=shutil.which("env")).stdout.split(b"\0")
    traced = call("run", "--", "env", "-0").stdout.split(b"\0")
    added = sorted(entry.split(b"=")[0] for entry in set(traced) - set(plain))
    assert added == [b"DEVSAN_OPTIONS", b"LD_PRELOAD"]
    assert len(traced) == len(plain) + 1


def test_words_of_the_command_are_left_alone(call):
    done = call("run", "--", "printf", "%s|", "--quiet", "", "a b", "--", "-x", text=True)
    assert done.stdout == "--quiet||a b|--|-x|"


def test_process_is_as_the_shell_would_have_made_it(call):
    def before():
        signal.signal(signal.SIGHUP, signal.SIG_IGN)  # nohup
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        os.umask(0o027)
        os.nice(3)

    probe = [sys.executable, "-S", "-c", INHERITED]
    plain = json.loads(call(*probe[1:], program=probe[0], preexec_fn=before).stdout)
    traced = json.loads(call("run", "--", *probe, preexec_fn=before).stdout)
    assert plain["umask"] == 0o027 and int(plain["ignored"], 16) & 1
    for inherited in (plain, traced):
        del inherited["group"]
    assert traced == plain


def test_command_stays_in_the_process_group(call):
    done = call("run", "--", sys.executable, "-S", "-c", "import os; print(os.getpgid(0) == os.getpgid(os.getppid()))")
    assert done.stdout == b"True\n"


def test_existing_preload_is_kept_behind_ours(call, devsan):
    libraries = ["libm.so.6", "libdl.so.2"]
    library = call("lib", text=True).stdout.strip()
    done = call(*sh('echo "$LD_PRELOAD"'), env={"LD_PRELOAD": ":".join(libraries)}, text=True)
    assert done.stdout.strip() == ":".join([library, *libraries])
    assert done.stderr == ""


@pytest.mark.parametrize("preloaded", [False, True], ids=["linked", "preloaded"])
def test_program_with_address_sanitizer_runs(call, tmp_path, preloaded):
    source = tmp_path / "program.c"
    source.write_text('#include <stdio.h>\nint main(void) { puts("fine"); return 0; }\n')
    built = subprocess.run(["cc", "-fsanitize=address", "-o", tmp_path / "program", source], capture_output=True)
    if built.returncode != 0:
        pytest.skip("no AddressSanitizer here")
    runtime = subprocess.run(["cc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    done = call("run", "--", tmp_path / "program", env={"LD_PRELOAD": runtime} if preloaded else {})
    assert (done.returncode, done.stdout, done.stderr) == (0, b"fine\n", b"")


@pytest.mark.parametrize("name", ["with space", "with:colon", "with$dollar"])
def test_installation_in_an_odd_directory_works(call, devsan, environment, tmp_path, name):
    real = devsan.resolve()
    prefix = tmp_path / name
    (prefix / "bin").mkdir(parents=True)
    shutil.copy2(real, prefix / "bin/devsan")
    shutil.copytree(real.parents[1] / "lib/devsan", prefix / "lib/devsan")
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    library = call("lib", program=prefix / "bin/devsan", env=env, text=True).stdout.strip()
    assert os.path.realpath(library) == str(prefix / "lib/devsan/libdevsan.so")
    done = call(*sh("grep -c 'lib/devsan/libdevsan.so' /proc/self/maps"), program=prefix / "bin/devsan", env=env)
    assert done.returncode == 0 and int(done.stdout) > 0
    assert done.stderr == b"", "the loader complains when it cannot preload"


def test_works_in_an_empty_environment(devsan, tmp_path):
    done = subprocess.run([devsan, "run", "--", "/usr/bin/env"], env={}, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == ""
    assert sorted(line.split("=")[0] for line in done.stdout.splitlines()) == ["DEVSAN_OPTIONS", "LD_PRELOAD"]


def test_nested_runs_share_the_directory_and_preload_once(call, devsan):
    done = call("run", "--out", "traces", "--", devsan, *sh('cd /; echo "$LD_PRELOAD $DEVSAN_OPTIONS"'), text=True)
    assert (done.returncode, done.stderr) == (0, "")
    preload, options = done.stdout.split()
    assert preload.count("libdevsan") == 1
    assert os.path.isabs(dict(pair.split("=") for pair in options.split(":"))["out"])


def test_flag_wins_over_the_environment(call, tmp_path):
    done = call("run", "--sim", "2", "--out", "flag", "--", "sh", "-c", 'echo "$DEVSAN_OPTIONS"',
                env={"DEVSAN_OPTIONS": f"sim=4:out=/elsewhere:trace_size=4M:hooks={tmp_path}"}, text=True)
    options = dict(pair.split("=") for pair in done.stdout.strip().split(":"))
    assert options.pop("run")
    assert options == {"sim": "2", "out": str(tmp_path / "flag"), "trace_size": "4M", "hooks": str(tmp_path)}


def test_nothing_is_written_for_a_command_without_torch(call, tmp_path):
    call(*sh("true"))
    assert list(tmp_path.iterdir()) == []


def test_unknown_kind_for_fail_on_names_the_known_ones(call):
    done = call("run", "--fail-on", "typo", "--", "true", text=True)
    assert done.returncode == 2
    assert "'typo'" in done.stderr and "device-mismatch" in done.stderr


def test_fail_on_leaves_a_run_without_findings_alone(call):
    assert call("run", "--fail-on", "any", "--", "true").returncode == 0
    assert call("run", "--fail-on", "any", "--", "false").returncode == 1


def test_near_miss_is_answered_with_what_was_meant(call):
    assert "--quiet?" in call("run", "--quite", "--", "true", text=True).stderr
    assert "build?" in call("biuld", text=True).stderr


@pytest.mark.parametrize("command", [[], ["run"], ["view"], ["build"], ["lib"]])
def test_every_command_has_help_and_version(call, command):
    assert call(*command, "--version", text=True).stdout.startswith("devsan ")
    helped = call(*command, "--help", text=True)
    assert helped.returncode == 0 and "--help" in helped.stdout and helped.stderr == ""


def test_program_that_cannot_be_preloaded_is_named_on_a_terminal(devsan, environment, tmp_path):
    source = tmp_path / "program.c"
    source.write_text("int main(void) { return 4; }\n")
    built = subprocess.run(["cc", "-static", "-o", tmp_path / "program", source], capture_output=True)
    if built.returncode != 0:
        pytest.skip("no static C library here")
    terminal = Terminal([devsan, "run", "--", tmp_path / "program"], environment, tmp_path)
    terminal.expect(b"is statically linked")
    assert terminal.end() == 4
    done = subprocess.run([devsan, "run", "--", tmp_path / "program"], env=environment, cwd=tmp_path, capture_output=True)
    assert (done.returncode, done.stderr) == (4, b"")
