"""Times work with something switched on and off in turn, in one process, and prints what it measured as JSON.

    bench_measure.py devsan|dispatch-mode|debug-mode|profiler|record-function|memory-history DEVICE PAIRS SECONDS [LIBRARY]

PAIRS of each operator, and half as many rounds of each step at least; SECONDS for the steps together.
"""

import ctypes
import json
import math
import random
import statistics
import sys
import time
from typing import Callable, NamedTuple, Sequence

from bench_statistics import Round, Sampler, orders
from bench_workloads import STEPS, Op, Step, in_turn, no_garbage_collection, operators, switch

CALLS = 640  # of an operator in one batch: a millisecond or so
BLOCK = 0.02  # seconds at least that steps run in one block: long beside what a synchronisation takes
SHORTEST_BLOCK, LONGEST_BLOCK = 4, 256  # steps
CLOCKS = 3.0  # seconds until a GPU that was idle has its full clock
OTHERS_WIDTH = 0.02  # to show how much dearer something is takes fewer rounds than to hold it against a budget
Switch = Callable[[int], None]


class Work(NamedTuple):
    """What one side of a pair, or one block of a round, runs: `warm` times after a switch, then `timed` times by the clock.

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


# ---- steps

def blocks_of(step: Step, timer: Timer) -> Work:
    """As many steps in a block as the step's own time asks for."""
    seconds, _ = timer(Work(step, timed=SHORTEST_BLOCK))
    timed = min(LONGEST_BLOCK, max(SHORTEST_BLOCK, math.ceil(BLOCK / seconds)))
    return Work(step, warm=max(2, timed // 4), timed=timed)


def warm_up(works: Sequence[Work], enable: Switch, seconds: float) -> None:
    over = time.monotonic() + seconds
    while True:
        for enabled in (1, 0):
            enable(enabled)
            for work in works:
                work.repeat(work.warm)
        if time.monotonic() >= over:
            return


def make_steps(device: str, skipped: list[str]) -> dict[str, Step]:
    """The device's steps. One that cannot be made (a capture that fails) leaves the others as they are."""
    import torch

    steps = {}
    for name, workload in STEPS[device.split(":")[0]].items():
        try:
            steps[name] = workload.make(device)
            steps[name]()
        except (RuntimeError, NotImplementedError) as error:
            steps.pop(name, None)
            skipped.append(f"{name}: {(str(error).splitlines() or [type(error).__name__])[0]}")
            if device.startswith("cuda"):
                torch.cuda.set_stream(torch.cuda.default_stream())  # a failed capture leaves its own stream selected
    return steps


def measured_steps(device: str, what: str, enable: Switch, least: int, seconds: float, skipped: list[str]) -> dict:
    timer = Timer(device)
    steps = make_steps(device, skipped)
    works = {name: Work(step, warm=2) for name, step in steps.items()}
    warm_up(list(works.values()), enable, CLOCKS if device.startswith("cuda") else 0)
    works = {name: blocks_of(step, timer) for name, step in steps.items()}
    aims = {name: STEPS[device.split(":")[0]][name].aim for name in steps}
    if what != "devsan":
        aims = {name: aim._replace(width=OTHERS_WIDTH) for name, aim in aims.items()}
    order = orders()

    def measure(name: str) -> Round:
        blocks: tuple[list, list] = ([], [])
        for enabled in next(order):
            enable(enabled)
            works[name].repeat(works[name].warm)
            blocks[enabled].append(timer(works[name]))
        return Round(*(tuple(map(statistics.fmean, zip(*side))) for side in blocks))

    sampler = Sampler(aims, least)
    with no_garbage_collection():
        sampler.run(measure, seconds)
    enable(0)
    return {name: sampler.figures(name) | {"block": works[name].timed} for name in steps}


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


def main(what: str, device: str, pairs: int, seconds: float, library: str = "") -> None:
    import torch

    torch.set_num_threads(1)
    enable = SWITCHES[what](library)
    result: dict = {"torch": torch.__version__, "python": sys.version.split()[0], "operators": [], "skipped": []}
    if device.startswith("cuda"):
        result |= {"gpu": torch.cuda.get_device_name(device), "rehearsal": "devsan_simulation" in sys.modules}
    else:  # on a GPU an operator's time is that of the launch, which hides nothing more than the CPU's table tells
        ops = operators(device)
        measured = paired(Timer(device), [Work(lambda batch=op.batch: batch(CALLS)) for op in ops], enable, pairs)
        result["operators"] = [operator_figures(op, rows) for op, rows in zip(ops, measured)]
    result["steps"] = measured_steps(device, what, enable, pairs // 2, seconds, result["skipped"])
    print(json.dumps(result))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]), *sys.argv[5:])
