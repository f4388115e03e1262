#!/usr/bin/env python3
"""What devsan adds to a collective: hooks off and on in turn in one process, on a group whose backend does nothing.

    .venv/bin/devsan run --quiet -- .venv/bin/python scripts/bench_collectives.py [PAIRS]

Prints nanoseconds of one call: without the hooks, with them, and the difference with its 95 % interval.
"""

import statistics
import sys

from bench_measure import Timer, Work, median_interval, paired
from bench_workloads import batch_of, switch

CALLS = 320  # in one batch


def collectives():
    """Calls of a batch, by name: functions of the group, torch's Python around one, and an operator of
    c10d and a functional collective by `torch.ops`, which are seen in the dispatcher."""
    import torch
    import torch.distributed as dist
    import torch.testing._internal.distributed.fake_pg as fake

    dist.init_process_group("fake", store=fake.FakeStore(), rank=0, world_size=2)
    group = dist.distributed_c10d._get_default_group()
    options = dist.AllreduceOptions()
    value = torch.ones(4)
    names = {"group": group, "options": options, "values": [value], "dist": dist, "value": value, "boxed": group.boxed(),
             "c10d": torch.ops.c10d, "functional": torch.ops._c10d_functional, "name": group.group_name}
    calls = ["group.allreduce(values, options)", "dist.all_reduce(value)", "group.barrier()",
             "c10d.broadcast_(values, boxed, 0, 0)",
             "functional.wait_tensor(functional.all_reduce(value, 'sum', name))"]
    return {call: batch_of(call, names) for call in calls}


def main():
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    batches = collectives()
    works = [Work(lambda batch=batch: batch(CALLS)) for batch in batches.values()]
    for name, measured in zip(batches, paired(Timer("cpu"), works, switch(), pairs)):
        off, on = ([pair[side][0] / CALLS * 1e9 for pair in measured] for side in (0, 1))
        added = [b - a for a, b in zip(off, on)]
        low, high = median_interval(added)
        print(f"{name}: {statistics.median(off):.0f} ns off, {statistics.median(on):.0f} ns on, "
              f"{statistics.median(added):.0f} ns added ({low:.0f} to {high:.0f})")


if __name__ == "__main__":
    main()
