"""Times work with something switched on and off in turn, in one process, and prints what it measured as JSON.

    bench_measure.py devsan|dispatch-mode|debug-mode|profiler|record-function|memory-history DEVICE PAIRS [LIBRARY]
"""

import ctypes
import json
import random
import statistics
import sys
import time
from typing import Callable, NamedTuple, Sequence

from bench_workloads import Op, in_turn, no_garbage_collection, operators, switch, tiny_step, transformer_step

CALLS = 640  # of an operator in one batch: a millisecond or so
Switch = Callable[[int], None]


class Work(NamedTuple):
    """What one side of a pair runs: `warm` times after a switch, then `timed` times by the clock.

    A training runs its step over and over. A first step after other work finds the processor's caches full of that work,
    on either side, and stands for no training; so steps are timed several at once, after some that are not.
    """

    run: Callable[[], None]
    warm: int = 1
    timed: int = 1

    def repeat(self, times: int) -> None:
        for _ in range(times):
            self.run()


def median_interval(values: Sequence[float]) -> list[float]:
    """Where the median lies with 95 % confidence: a bootstrap with a fixed seed."""
    chance = random.Random(0)
    medians = sorted(statistics.median(chance.choices(values, k=len(values))) for _ in range(1000))
    return [medians[25], medians[974]]


class Timer:
    """Times work on one device: seconds by the clock, and of this thread's processor time, each time it runs."""

    def __init__(self, device: str) -> None:
        import torch

        self.wait: Callable[[], None] = torch.cuda.synchronize if device.startswith("cuda") else lambda: None

    def __call__(self, work: Callable[[], None]) -> tuple[float, float]:
        self.wait()
        wall, cpu = time.perf_counter(), time.thread_time()
        work.repeat(work.timed)
        self.wait()
        return (time.perf_counter() - wall) / work.timed, (time.thread_time() - cpu) / work.timed


def paired(timer: Timer, works: Sequence[Work], enable: Switch, pairs: int) -> list[list[tuple]]:
    """For each work, its pairs of (off, on).

    The works take turns, so that a busy moment of the machine spoils few pairs of each. What was just switched warms up
    before it is timed.
    """
    for enabled in (1, 0):
        enable(enabled)
        for work in works:
            work.run()
    measured: list[list[tuple]] = [[] for _ in works]
    with no_garbage_collection():
        for order in in_turn(pairs):
            for work, rows in zip(works, measured):
                pair: list = [None, None]
                for enabled in order:
                    enable(enabled)
                    work.repeat(work.warm)
                    pair[enabled] = timer(work)
                rows.append(tuple(pair))
    enable(0)
    return measured


def operator_figures(op: Op, measured: list[tuple]) -> dict:
    """Nanoseconds of one call."""
    off, on = ([pair[side][0] / CALLS * 1e9 for pair in measured] for side in (0, 1))
    added = [b - a for a, b in zip(off, on)]
    return {"name": op.name, "operands": op.operands, "ns_off": statistics.median(off), "ns_on": statistics.median(on),
            "ns_added": statistics.median(added), "interval": median_interval(added), "pairs": len(measured)}


def step_figures(measured: list[tuple]) -> dict:
    ratios = [on[0] / off[0] for off, on in measured]
    cpu = [on[1] / off[1] for off, on in measured]
    return {"ms_off": statistics.median(off[0] for off, _ in measured) * 1e3,
            "ms_on": statistics.median(on[0] for _, on in measured) * 1e3,
            "ratio": statistics.median(ratios), "interval": median_interval(ratios),
            "cpu_ratio": statistics.median(cpu), "cpu_interval": median_interval(cpu), "pairs": len(measured)}


# ---- what is switched

def context_switch(make: Callable[[], object]) -> Switch:
    """Enters a fresh context manager at 1 and leaves it at 0."""
    entered: list = []

    def enable(enabled: int) -> None:
        while entered:
            entered.pop().__exit__(None, None, None)
        if enabled:
            entered.append(make())
            entered[-1].__enter__()

    return enable


def dispatch_mode(_: str) -> Switch:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    class CompareDevices(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            devices = {value.device for value in args if isinstance(value, torch.Tensor)}
            if len(devices) > 1:
                raise RuntimeError(f"{func} was given tensors on {devices}")
            return func(*args, **(kwargs or {}))

    return context_switch(CompareDevices)


def debug_mode(_: str) -> Switch:
    from torch.utils._debug_mode import DebugMode

    return context_switch(DebugMode)


def profiler(_: str) -> Switch:
    from torch.profiler import ProfilerActivity, profile

    return context_switch(lambda: profile(activities=[ProfilerActivity.CPU]))


def record_function(library: str) -> Switch:
    return ctypes.CDLL(library).bench_record_function


def memory_history(_: str) -> Switch:
    import torch

    return lambda enabled: torch.cuda.memory._record_memory_history("all" if enabled else None, max_entries=100_000)


SWITCHES: dict[str, Callable[[str], Switch]] = {
    "devsan": lambda _: switch(), "dispatch-mode": dispatch_mode, "debug-mode": debug_mode, "profiler": profiler,
    "record-function": record_function, "memory-history": memory_history}


def main(what: str, device: str, pairs: int, library: str = "") -> None:
    import torch

    torch.set_num_threads(1)
    timer = Timer(device)
    enable = SWITCHES[what](library)
    result: dict = {"torch": torch.__version__, "python": sys.version.split()[0]}
    if device.startswith("cuda"):
        result["gpu"] = torch.cuda.get_device_name(device)
    ops = operators(device)
    steps = {"tiny": tiny_step(device), "transformer": transformer_step(device)}
    works = [Work(lambda batch=op.batch: batch(CALLS)) for op in ops]
    works += [Work(step, warm=2, timed=4) for step in steps.values()]
    measured = paired(timer, works, enable, pairs)
    result["operators"] = [operator_figures(op, rows) for op, rows in zip(ops, measured)]
    result["steps"] = {name: step_figures(rows) for name, rows in zip(steps, measured[len(ops):])}
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
