"""Measures what devsan adds to the start of a process and to its memory: pairs of whole processes.

Run by itself, this file is such a process: it imports torch, makes three training steps and prints what they took.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import time


def one(python: str, environment: dict) -> dict:
    began = time.perf_counter()
    done = subprocess.run([python, __file__], env=environment, capture_output=True, text=True, check=True)
    return {"process_ms": (time.perf_counter() - began) * 1e3} | json.loads(done.stdout.splitlines()[-1])


def measure(python: str, plain: dict, traced: dict, out: pathlib.Path, pairs: int) -> dict:
    """Medians of what a traced process has over a plain one. `out` is where traced processes leave their files."""
    one(python, traced), one(python, plain)  # files come into the page cache
    differences, traces = [], []
    for number in range(pairs):
        sides = {}
        for side in ("plain", "traced") if number % 2 else ("traced", "plain"):
            sides[side] = one(python, traced if side == "traced" else plain)
        differences.append({key: sides["traced"][key] - sides["plain"][key] for key in sides["plain"]})
    for path in out.glob("*.devsan"):
        status = path.stat()
        traces.append((status.st_size, status.st_blocks * 512))
    result = {key: statistics.median(row[key] for row in differences) for key in differences[0]}
    result["trace_bytes"], result["trace_disk_bytes"] = max(traces) if traces else (0, 0)
    return result | {"pairs": pairs}


def started() -> None:
    began, cpu = time.perf_counter(), time.process_time()
    import torch

    import_ms, import_cpu_ms = (time.perf_counter() - began) * 1e3, (time.process_time() - cpu) * 1e3
    from bench_workloads import tiny_step

    torch.set_num_threads(1)
    step = tiny_step("cpu")
    for _ in range(3):
        step()
    with open("/proc/self/status") as status:
        sizes = {line.split(":")[0]: int(line.split()[1]) * 1024 for line in status if line.startswith("Vm")}
    print(json.dumps({"import_ms": import_ms, "import_cpu_ms": import_cpu_ms, "rss": sizes["VmRSS"],
                      "peak_rss": sizes["VmHWM"], "mapped": sizes["VmSize"]}))


if __name__ == "__main__":
    started()
