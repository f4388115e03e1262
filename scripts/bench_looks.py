#!/usr/bin/env python3
"""Counts the instructions of a look at where tensors are (`placements`) beside those of a training step, with callgrind.

    scripts/bench_looks.py [LAYERS]

The model of bench_placements.py. The look waits for so many times what the last one took (kStepEndFactor in
hooks/inprocess/events/placements.cpp), so from its share of a step follows after how many steps there is another one,
and what that adds to all of them. Instructions repeat to half a percent, where times of processes differ by 2 %.
"""

import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from bench_callgrind import under_callgrind
from bench_placements import DEVSAN, LAYERS, training

FIRST_STEPS = 3  # with a look each; the first one writes everything down
STEPS = 2        # that are counted, also with a look each: the first six looks of a process come as they are due
LOOK = "devsan::hooks::look_at_placements("
SOURCES = pathlib.Path(__file__).resolve().parent.parent
CXX = os.environ.get("CXX", "c++")


def counted(library, layers):
    """The program that runs under callgrind."""
    import ctypes

    helper = ctypes.CDLL(library)
    step = training(layers)
    for _ in range(FIRST_STEPS):
        step()
    helper.bench_instrument()
    step()
    helper.bench_count_from_here()
    for _ in range(STEPS):
        step()
    helper.bench_count_to_here(b"steps")


def profile(folder, layers):
    """What callgrind_annotate says of the counted steps, each function with what it calls."""
    library = folder / "bench_callgrind.so"
    subprocess.run([*CXX.split(), "-shared", "-fPIC", "-o", library, SOURCES / "scripts/bench_callgrind.cpp"], check=True)
    preload = subprocess.run([DEVSAN, "lib"], check=True, capture_output=True, text=True).stdout.strip()
    environment = {**os.environ, "LD_PRELOAD": preload, "DEVSAN_OPTIONS": f'out="{folder}/traces"', "PYTHONHASHSEED": "0"}
    subprocess.run(under_callgrind(folder, sys.executable, __file__, "--counted", library, layers), env=environment,
                   check=True)
    return subprocess.run(["callgrind_annotate", "--inclusive=yes", "--threshold=100", folder / "dump.1"], check=True,
                          capture_output=True, text=True).stdout


def figures(text):
    """Instructions of the counted steps together, and of the looks in them."""
    number = r"^\s*([\d,]+)[^\n]*?"
    total = re.search(number + "PROGRAM TOTALS", text, re.MULTILINE)
    look = re.search(number + re.escape(LOOK), text, re.MULTILINE)
    if not total or not look:
        raise SystemExit("the steps, or the look in them, do not show in the profile")
    return (int(match[1].replace(",", "")) for match in (total, look))


def main():
    if sys.argv[1:2] == ["--counted"]:
        return counted(sys.argv[2], int(sys.argv[3]))
    layers = int(sys.argv[1]) if len(sys.argv) > 1 else LAYERS
    with tempfile.TemporaryDirectory() as folder:
        total, looks = figures(profile(pathlib.Path(folder), layers))
    source = (SOURCES / "hooks/inprocess/events/placements.cpp").read_text()
    factor = int(re.search(r"kStepEndFactor = (\d+)", source)[1])
    look, step = looks / STEPS, (total - looks) / STEPS
    every = max(1, math.ceil(factor * look / step))
    print(f"{layers} layers: a step {step:,.0f} instructions, a look {look:,.0f}, one in {every} steps: "
          f"{look / step / every:.3%} of the steps")


if __name__ == "__main__":
    main()
