"""Bad input gets a clear error and loses nothing: wrong usage, places where nothing can be written, files that are no
traces, and nonsense in DEVSAN_OPTIONS."""

import json
import os
import random
import subprocess

import pytest

from harness import Runner

ADDS = """
    import torch
    print((torch.ones(3) + 1).sum().item())
"""
ADDED = "6.0\n"

MEETS = """
    import torch
    torch.ones(3, device="cuda") + torch.ones(3)
"""


def call(devsan, *args, env=None, cwd=None):
    return subprocess.run([devsan, *map(str, args)], capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          env=env, cwd=cwd, timeout=60)


# ---- wrong usage

@pytest.mark.parametrize("args, complaint", [
    (["run", "--no-such-option", "--", "true"], "--no-such-option"),
    (["view", "--no-such-option"], "--no-such-option"),
    (["--no-such-option"], "--no-such-option"),
    (["no-such-command"], "no-such-command"),
    (["run"], "command"),
    (["run", "--"], "command"),
    (["run", "--sim", "many", "--", "true"], "--sim"),
    (["run", "--sim", "-1", "--", "true"], "--sim"),
    (["view"], ""),
    ([], ""),
])
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(devsan, tmp_path, args, complaint):
    done = call(devsan, *args, cwd=tmp_path)
    assert done.returncode == 2, done
    assert done.stdout == ""
    assert complaint in done.stderr and done.stderr.strip()
    assert list(tmp_path.iterdir()) == [], "wrong usage should leave nothing behind"


def test_command_that_is_not_there_ends_as_in_a_shell(devsan, tmp_path):
    done = call(devsan, "run", "--out", tmp_path / "out", "--", "no-such-program-here")
    assert done.returncode == 127
    assert "no-such-program-here" in done.stderr
    not_executable = tmp_path / "text"
    not_executable.write_text("words\n")
    done = call(devsan, "run", "--out", tmp_path / "out", "--", not_executable)
    assert done.returncode == 126
    assert str(not_executable) in done.stderr


# ---- places where nothing can be written

def unwritable(tmp_path):
    """A directory that not even root can make."""
    (tmp_path / "file").write_text("in the way")
    return tmp_path / "file/out"


@pytest.mark.parametrize("preload", [False, True], ids=["devsan run", "preload"])
def test_program_runs_on_when_the_directory_cannot_be_made(run_python, tmp_path, preload):
    out = unwritable(tmp_path)
    result = run_python(ADDS, out=out, preload=preload)
    assert (result.status, result.stdout) == (0, ADDED)
    warnings = result.stderr.strip().splitlines()
    assert len(warnings) == 1 and str(out) in warnings[0] and warnings[0].startswith("devsan: ")


@pytest.fixture
def full_disk(tmp_path):
    """A file system of 1 MB, less than the smallest trace."""
    place = tmp_path / "disk"
    place.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted here: {done.stderr.strip()}")
    yield place
    subprocess.run(["umount", place], check=True)


@pytest.mark.parametrize("preload", [False, True], ids=["devsan run", "preload"])
def test_program_runs_on_when_the_disk_is_full(run_python, full_disk, preload):
    result = run_python(ADDS, out=full_disk / "out", preload=preload)
    assert (result.status, result.stdout) == (0, ADDED)
    warnings = result.stderr.strip().splitlines()
    assert len(warnings) == 1 and warnings[0].startswith("devsan: ")
    assert list(full_disk.glob("out/*.devsan")) == [], "a trace without room should not be left behind"


# ---- files that are no traces

@pytest.fixture(scope="module")
def trace(devsan, python, tmp_path_factory):
    """The bytes of a good trace with one finding."""
    result = Runner(devsan, python, tmp_path_factory.mktemp("trace"))(MEETS, sim=1, options=["--quiet"])
    assert result.status == 1 and len(result.raised()) == 1
    return next(result.out.glob("rank*.devsan")).read_bytes()


def damaged_traces(trace):
    newer = bytearray(trace)
    newer[8:10] = (int.from_bytes(newer[8:10], "little") + 1).to_bytes(2, "little")
    other_magic = b"GARBAGE!" + trace[8:]
    return {
        "empty": b"",
        "one byte": trace[:1],
        "half a header": trace[:2048],
        "another major version": bytes(newer),
        "another magic": other_magic,
        "text": b"This is a letter, not a trace.\n" * 1000,
        "noise": random.Random(5).randbytes(65536),
        "zeros": bytes(65536),
    }


NAMES = ["empty", "one byte", "half a header", "another major version", "another magic", "text", "noise", "zeros"]


@pytest.mark.parametrize("name", NAMES)
def test_file_that_is_no_trace_is_refused_in_one_line(devsan, trace, tmp_path, name):
    path = tmp_path / "rank-.1.devsan"
    path.write_bytes(damaged_traces(trace)[name])
    done = call(devsan, "view", path, "--json")
    assert done.returncode == 1, done
    assert str(path) in done.stderr
    if name == "another major version":
        assert "format 2." in done.stderr and "newer devsan" in done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_bad_file_beside_a_good_one_hides_nothing(devsan, trace, tmp_path, name):
    (tmp_path / "rank-.1.devsan").write_bytes(damaged_traces(trace)[name])
    (tmp_path / "rank-.2.devsan").write_bytes(trace)
    done = call(devsan, "view", tmp_path, "--json")
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert len(report["findings"]) == 1
    assert any("rank-.1.devsan" in json.dumps(damage) for damage in report["damage"])


def test_truncated_trace_gives_what_is_left(devsan, trace, tmp_path):
    path = tmp_path / "rank-.1.devsan"
    path.write_bytes(trace[: len(trace) - 4096])
    done = call(devsan, "view", path, "--json")
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["damage"]


def test_noise_in_a_trace_never_stops_the_reader(devsan, trace, tmp_path):
    random_ = random.Random(11)
    path = tmp_path / "rank-.1.devsan"
    used = len(trace.rstrip(b"\0"))
    for _ in range(40):
        noisy = bytearray(trace)
        for _ in range(random_.choice((1, 10, 1000))):
            noisy[random_.randrange(random_.choice((512, 4096, used)))] = random_.randrange(256)
        path.write_bytes(noisy)
        for flags in (["--json"], []):
            done = call(devsan, "view", path, *flags)
            assert done.returncode in (0, 1), done


def test_nothing_to_view_is_said(devsan, tmp_path):
    for path in (tmp_path, tmp_path / "not there"):
        done = call(devsan, "view", path)
        assert done.returncode == 1
        assert str(path) in done.stderr


# ---- nonsense in DEVSAN_OPTIONS

NONSENSE = {
    "an unknown key": b"colour=blue",
    "no number": b"sim=many",
    "a negative number": b"sim=-3",
    "a huge number": b"sim=99999999999999999999",
    "no value": b"sim",
    "an empty key": b"=1",
    "an open quote": b'out="/tmp/x',
    "bytes of no encoding": b"\xff\xfe\x80=\xc3",
    "a bad size": b"trace_size=lots",
    "very long text": b"x" * 65536,
    "many separators": b":::::=:=:=:",
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_in_the_options_is_told_and_the_program_runs_on(run_python, tmp_path, name):
    env = {"DEVSAN_OPTIONS": os.fsdecode(b'out="%s":%s' % (os.fsencode(tmp_path / "out"), NONSENSE[name]))}
    result = run_python(ADDS, preload=True, env=env)
    assert (result.status, result.stdout) == (0, ADDED)
    lines = result.stderr.splitlines()
    assert lines and all(line.startswith("devsan: ") for line in lines), result.stderr
    assert len(lines) <= 4, "nonsense should be told of briefly"
    assert len(result.stderr) < 2000


def test_good_options_beside_nonsense_count(run_python, tmp_path):
    env = {"DEVSAN_OPTIONS": f'colour=blue:out="{tmp_path / "out: here"}":sim=x'}
    result = run_python(ADDS, preload=True, env=env)
    assert result.stdout == ADDED
    assert len(list((tmp_path / "out: here").glob("rank-.*.devsan"))) == 1


def test_enabled_0_turns_everything_off(run_python, tmp_path):
    result = run_python(ADDS, preload=True, env={"DEVSAN_OPTIONS": f"enabled=0:out={tmp_path}/out:nonsense"})
    assert (result.status, result.stdout, result.stderr) == (0, ADDED, "")
    assert not (tmp_path / "out").exists()
