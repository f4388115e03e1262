#!/usr/bin/env python3
"""What the looks at where tensors are (`placements`) add to a training: processes with and without them, in turn.

    scripts/bench_placements.py [PAIRS [STEPS]]

The model has some 500 tensors, and Adam two for each; a step takes some 50 ms on one CPU. Prints what processor time the
steps take with the looks, as a multiple of that without, with its 95 % interval. The first steps of a process are left
out: its first looks come as they are due.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from bench_measure import median_interval

WARM_UPS = 50
LAYERS = 40
DEVSAN = pathlib.Path(__file__).resolve().parent.parent / ".venv/bin/devsan"


def training(layers):
    """A function that makes one step of the training."""
    import torch

    torch.set_num_threads(1)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, batch_first=True)
    model = torch.nn.TransformerEncoder(layer, layers)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    batch = torch.randn(4, 16, 64)

    def step():
        model(batch).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


def train(steps):
    """Prints the processor time of the steps after the first ones, in seconds."""
    step = training(LAYERS)
    for _ in range(WARM_UPS):
        step()
    begin = time.process_time()
    for _ in range(steps):
        step()
    print(time.process_time() - begin)


def measured(library, placements, steps):
    with tempfile.TemporaryDirectory() as out:
        environment = {**os.environ, "LD_PRELOAD": library, "DEVSAN_OPTIONS": f"out={out}:placements={placements:d}"}
        command = [sys.executable, __file__, "--train", str(steps)]
        done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return float(done.stdout.split()[0])


def main():
    if sys.argv[1:2] == ["--train"]:
        return train(int(sys.argv[2]))
    pairs, steps = (int(value) for value in (sys.argv[1:] + ["10", "300"][len(sys.argv) - 1:]))
    library = subprocess.run([DEVSAN, "lib"], check=True, capture_output=True, text=True).stdout.strip()
    ratios = []
    for pair in range(pairs):
        sides = {side: measured(library, side, steps) for side in ((False, True) if pair % 2 else (True, False))}
        ratios.append(sides[True] / sides[False])
        print(f"pair {pair + 1}: {ratios[-1]:.4f}", flush=True)
    low, high = median_interval(ratios)
    print(f"{statistics.median(ratios):.4f} ({low:.4f} to {high:.4f}) of {pairs} pairs")


if __name__ == "__main__":
    main()
