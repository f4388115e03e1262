"""The cache of hooks where several machines share it, where flock() fails and where it cannot be written; and hooks that
are carried from one machine to another in a file. With the stand-ins of test_build.py for torch and the compiler."""

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


# ---- devsan build --export and --import

def export(build):
    file = build.folder / "hooks.tar"
    done = build("--sim", "--export", file)
    assert done.returncode == 0, done.stderr_text
    return file, pathlib.Path(done.stdout_text.strip())


def without_compiler(build):
    """The same torch on another machine."""
    subprocess.run(["rm", "-r", build.cache], check=True)
    build.env["CXX"] = "/no/such/compiler"


def test_hooks_that_were_exported_serve_a_machine_without_a_compiler(build):
    file, folder = export(build)
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    without_compiler(build)
    done = build("--import", file)
    assert (done.returncode, done.stdout_text, done.stderr_text) == (0, f"{folder}\n", "")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made
    assert build().stdout_text == f"{folder}\n"
    names = subprocess.run(["tar", "-tf", file], capture_output=True, text=True, check=True).stdout.split()
    assert names == ["devsan-hooks-export", "libdevsan_torch.so", "libdevsan_sim.so"]


def check_import_refused(build, file, word):
    done = build("--import", file)
    assert (done.returncode, done.stdout_text) == (1, "")
    assert done.stderr_text.count("\n") == 1 and word in done.stderr_text and str(file) in done.stderr_text
    assert build.left() == []


def test_an_export_for_another_torch_is_refused(build):
    file, _ = export(build)
    without_compiler(build)
    make_library(build.torch / "lib/libtorch_cpu.so", ["another"])
    check_import_refused(build, file, "another torch")


def test_an_export_that_was_cut_off_is_refused(build):
    file, _ = export(build)
    without_compiler(build)
    os.truncate(file, 2500)
    check_import_refused(build, file, "damaged")


@pytest.mark.parametrize("content", [b"", b"some text\n", bytes(4096)])
def test_a_file_that_is_no_export_is_refused(build, content):
    file = build.folder / "letter"
    file.write_bytes(content)
    check_import_refused(build, file, "was not written by devsan build --export")


def test_export_and_import_exclude_each_other(build):
    done = build("--export", "a", "--import", "b")
    assert done.returncode == 2 and done.stderr_text.count("\n") == 1


def test_without_a_compiler_one_line_names_the_remedies(build):
    del build.env["CXX"]
    build.env["PATH"] = str(build.folder)
    done = build()
    assert done.returncode == 1 and done.stderr_text.count("\n") == 1
    for remedy in ("wheel", "apt install g++", "conda install gxx", "module load gcc", "--export FILE", "--import FILE"):
        assert remedy in done.stderr_text


# ---- torches that cannot be served

@pytest.mark.parametrize("flaw, word", [("old", "2.6 or later"), ("unmarked", "cannot tell the C++ ABI")])
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
