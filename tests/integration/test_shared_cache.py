"""The cache of hooks where several machines share it, where flock() fails and where it cannot be written. With the
stand-ins of test_build.py for torch and the compiler."""

import os
import pathlib
import subprocess
import sys

import pytest

from test_build import build, make_library, run, wait_for  # noqa: F401 (a fixture)


def without_flock(folder):
    """A library under which flock() fails as on NFS without a lock daemon."""
    source = folder / "no_flock.c"
    source.write_text("#include <errno.h>\nint flock(int file, int how) { errno = ENOLCK; return -1; }\n")
    library = folder / "no_flock.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    return str(library)


def lock_of(build):
    [lock] = build.cache.glob(".*.lock")
    return lock


def wait_until_it_compiles(build):
    wait_for(lambda: any(" -c " in call for call in build.calls()))


def let_compilers_wait(build):
    """Each waits for a file, which is returned."""
    go = build.folder / "go"
    build.compiler(f'while [ ! -e "{go}" ]; do sleep 0.05; done')
    return go


def check_one_good_result(build, processes):
    texts = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), texts
    [folder] = {out for out, _ in texts}
    folder = pathlib.Path(folder.strip())
    assert [p.name for p in folder.iterdir()] == ["libdevsan_torch.so"]
    assert [p.name for p in build.cache.iterdir()] == [folder.name], "no lock and no half-made folder stays"


def test_of_eight_at_once_one_builds_where_flock_fails(build):
    alone = build()
    calls = len(build.calls())
    subprocess.run(["rm", "-r", build.cache, build.log], check=True)
    build.env["LD_PRELOAD"] = without_flock(build.folder)
    processes = [build.start() for _ in range(8)]
    check_one_good_result(build, processes)
    assert len(build.calls()) == calls and alone.returncode == 0


def test_a_lock_says_who_holds_it_and_goes_with_the_build(build):
    go = let_compilers_wait(build)
    process = build.start()
    wait_until_it_compiles(build)
    host, _, pid, _, _ = lock_of(build).read_text().split(".")
    assert int(pid) == process.pid
    assert host == "".join(c if c.isalnum() else "-" for c in os.uname().nodename)[:64]
    go.touch()
    check_one_good_result(build, [process])


def test_a_lock_of_another_machine_is_waited_for_while_it_is_fresh(build):
    build.cache.mkdir(parents=True, mode=0o700)
    process = build()  # to learn the lock's name
    name = pathlib.Path(process.stdout_text.strip()).name
    subprocess.run(["rm", "-r", build.cache / name, build.log], check=True)
    lock = build.cache / f".{name}.lock"
    lock.write_text("elsewhere.0123abcd.1.1.0123abcd")
    waiting = build.start()
    line = waiting.stderr.readline()
    assert line == "devsan: another process is building the hooks; waiting for it\n"
    assert build.calls() == []
    lock.unlink()
    check_one_good_result(build, [waiting])


def test_a_lock_of_another_machine_that_is_not_kept_fresh_is_taken_over(build):
    name = pathlib.Path(build().stdout_text.strip()).name
    subprocess.run(["rm", "-r", build.cache / name], check=True)
    lock = build.cache / f".{name}.lock"
    lock.write_text("elsewhere.0123abcd.1.1.0123abcd")
    left = build.cache / f".building-{name}.elsewhere.0123abcd.1.1.0123abcd"
    left.mkdir()
    for path in (lock, left):
        os.utime(path, (1, 1))
    done = build()
    assert done.returncode == 0 and "waiting" not in done.stderr_text
    assert [p.name for p in build.cache.iterdir()] == [name]


def test_two_that_build_at_once_end_with_one_good_result(build):
    go = let_compilers_wait(build)
    first = build.start()
    wait_until_it_compiles(build)
    lock_of(build).unlink()  # as if another machine had not seen it
    second = build.start()
    wait_for(lambda: len(list(build.cache.glob(".building-*"))) == 2)
    go.touch()
    check_one_good_result(build, [first, second])


@pytest.fixture
def read_only_cache(build):
    folder = build.cache.parent
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", folder], capture_output=True)
    if done.returncode != 0:
        pytest.skip("a file system cannot be mounted here")
    yield build
    subprocess.run(["umount", folder], check=True)


def test_on_a_read_only_file_system_the_hooks_are_kept_in_the_temporary_directory(read_only_cache):
    build = read_only_cache
    build.env["TMPDIR"] = str(build.folder)
    kept = build.folder / f"devsan-{os.geteuid()}"
    first = build()
    assert first.returncode == 0 and pathlib.Path(first.stdout_text.strip()).parent == kept
    told = [line for line in first.stderr_text.splitlines() if str(kept) in line]
    assert len(told) == 1 and "Read-only file system" in told[0]
    assert kept.stat().st_mode & 0o777 == 0o700
    second = build()
    assert (second.stdout_text, second.stderr_text) == (first.stdout_text, "")


def test_where_nothing_can_be_written_one_line_says_so_and_the_program_runs(read_only_cache):
    build = read_only_cache
    build.env["TMPDIR"] = str(build.cache.parent)
    done = run(build, sys.executable, "-c", "raise SystemExit(5)")
    assert done.returncode == 5
    assert done.stderr.count("\n") == 1 and "XDG_CACHE_HOME" in done.stderr


def test_a_temporary_cache_of_another_user_is_refused(read_only_cache):
    build = read_only_cache
    build.env["TMPDIR"] = str(build.folder)
    kept = build.folder / f"devsan-{os.geteuid()}"
    kept.mkdir()
    kept.chmod(0o777)
    done = build()
    assert (done.returncode, done.stdout_text) == (1, "")
    assert done.stderr_text.count("\n") == 1 and "refused" in done.stderr_text and str(kept) in done.stderr_text
    assert list(kept.iterdir()) == []


# ---- torches that cannot be served

@pytest.mark.parametrize("flaw, word", [("old", "2.6 or later"), ("unmarked", "does not tell its C++ ABI")])
def test_a_torch_that_cannot_be_served_is_told_of_in_one_line_and_nothing_is_compiled(build, flaw, word):
    if flaw == "old":
        (build.torch / "version.py").write_text("__version__ = '2.5.1+cpu'\n")
    else:
        make_library(build.torch / "lib/libc10.so", ["something"])
    done = build()
    assert (done.returncode, done.stdout_text) == (1, "")
    assert done.stderr_text.count("\n") == 1 and word in done.stderr_text
    assert run(build, sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert build.calls() == []
