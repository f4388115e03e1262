"""Measures what devsan adds to a CUDA allocation call: pairs of whole processes, with a driver that only keeps books.

The driver is that of the tests (tests/integration/cuda_programs); no GPU is needed. A real driver's call costs some
microseconds, which would hide the difference. Run by itself, this file is such a process: bench_cuda_calls.py LIBRARY
"""

import ctypes
import os
import pathlib
import shutil
import statistics
import subprocess
import sys

SCRIPTS = pathlib.Path(__file__).resolve().parent
DRIVER = SCRIPTS.parent / "tests/integration/cuda_programs/fake_libcuda.c"


def build(folder: pathlib.Path) -> pathlib.Path:
    """The library, with the driver beside it. RuntimeError where that cannot be done."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not compiler:
        raise RuntimeError("there is no C compiler")
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / "versions.map"
    script.write_text("FAKE_1 { global: *; };\n")
    driver, library = folder / "libcuda.so.1", folder / "libbench_cuda_calls.so"
    for command in (
        [DRIVER, "-lpthread", "-Wl,-soname,libcuda.so.1", f"-Wl,--version-script={script}", "-o", driver],
        [SCRIPTS / "bench_cuda_calls.c", f"-L{folder}", "-l:libcuda.so.1", "-o", library],
    ):
        done = subprocess.run([compiler, "-shared", "-fPIC", "-O2", *map(str, command)],
                              capture_output=True, text=True, errors="replace")
        if done.returncode != 0:
            raise RuntimeError((done.stderr.strip().splitlines() or ["the compiler failed"])[0])
    return library


def one(python: str, library: pathlib.Path, environment: dict) -> float:
    """Nanoseconds for an allocation and its free."""
    paths = [str(library.parent), environment.get("LD_LIBRARY_PATH", "")]
    done = subprocess.run([python, __file__, library],
                          env=environment | {"LD_LIBRARY_PATH": os.pathsep.join(filter(None, paths))},
                          capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def measure(python: str, folder: pathlib.Path, plain: dict, traced: dict, pairs: int) -> dict:
    """Medians over pairs of processes. An allocation and its free are two calls: what is told is for one."""
    library = build(folder)
    rows = []
    for number in range(pairs):
        sides = {}
        for side in ("plain", "traced") if number % 2 else ("traced", "plain"):
            sides[side] = one(python, library, traced if side == "traced" else plain)
        rows.append((sides["plain"] / 2, (sides["traced"] - sides["plain"]) / 2))
    return {"ns_off": statistics.median(row[0] for row in rows),
            "ns_added": statistics.median(row[1] for row in rows), "pairs": pairs}


def measured(library: str) -> None:
    import torch  # noqa: F401 (devsan is inert in a process without it)

    helper = ctypes.CDLL(library)
    helper.bench_allocation.restype = ctypes.c_double
    print(helper.bench_allocation())


if __name__ == "__main__":
    measured(sys.argv[1])
