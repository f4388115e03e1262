#!/usr/bin/env python3
"""Measures the page of `devsan view --html` for runs of many ranks, in Chromium.

    .venv/bin/python scripts/bench_page.py [--ranks N ...] [--keep DIR]

Two processes run for real, on simulated devices; their traces are copied with another rank and pid each. The same of a
job that hangs, in which one rank of a hundred never enters a collective that the others wait in (`--hang-after`). Prints a
table for docs/benchmarks.md: the size of the page, the time until it is painted, and until the list shows what a filter
gives."""

import argparse
import itertools
import os
import pathlib
import shutil
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/integration"))

import browser  # noqa: E402  (lies beside the tests)
from rank_files import make_rank_files  # noqa: E402

PLACES = 400  # lines with a mismatch of their own, half of them on each of the two ranks and half on one
STEPS = 300
ROUNDS = 5
HEADER = struct.Struct("<II")    # pid, parent's pid
RANKS = struct.Struct("<iii")    # rank, local rank, world size
HEADER_AT, RANKS_AT = 24, 32     # docs/trace-format.md

PROGRAM = """
import os, torch
rank = int(os.environ["RANK"])
model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 8)).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
kept = []
for step in range({steps}):
    loss = model(torch.randn(16, 64, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    kept.append(torch.zeros(4096, device="cuda"))
a, b = torch.ones(4, device="cuda"), torch.ones(4)
{places}
a + b
"""

HANG = """
import datetime, threading, time, torch
import torch.distributed as dist
for _ in range(8):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=8))
values = torch.ones(4)
dist.all_reduce(values)
if dist.get_rank() == 0:
    time.sleep(60)  # until the launcher ends it
dist.all_reduce(values)
"""
HANGS_EVERY = 100

# From the event of the field to the second frame after it, when what changed is painted.
FILTER = """async text => {
  const field = document.getElementById("search");
  const begin = performance.now();
  field.value = text;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - begin;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


def program():
    line = "try: torch.{op}(a, b{n})\nexcept RuntimeError: pass"
    places = []
    for n in range(PLACES):
        guard = "" if n % 2 else "if rank == 0:\n    "
        places.append(f"b{n} = torch.ones(4)")
        body = line.format(op=("mul", "add", "sub", "div")[n % 4], n=n)
        places.append(guard + body.replace("\n", "\n    " if guard else "\n"))
    return PROGRAM.format(steps=STEPS, places="\n".join(places))


def record_hang(folder):
    """The directory with the traces of two ranks, of which the first never enters what the other waits in."""
    file = folder / "hang.py"
    file.write_text(HANG)
    command = [ROOT / ".venv/bin/devsan", "run", "--quiet", "--hang-after", "1", "--out", folder / "hang", "--",
               ROOT / ".venv/bin/python", "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", file]
    subprocess.run(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, check=False, timeout=600)
    return folder / "hang"


def record(folder):
    """The traces of the two processes."""
    file = folder / "train.py"
    file.write_text(program())
    python = ROOT / ".venv/bin/python"
    for rank in range(2):
        env = {**os.environ, "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        subprocess.run([ROOT / ".venv/bin/devsan", "run", "--quiet", "--sim", "1", "--out", folder / f"real{rank}", "--",
                        python, file], env=env, capture_output=True, check=False, timeout=600)
    return [next((folder / f"real{rank}").glob("rank*.devsan")) for rank in range(2)]


def copy_as(trace, folder, rank, ranks):
    """A copy of a trace that is of another rank of a run of so many."""
    file = folder / f"rank{rank}.{10000 + rank}.devsan"
    subprocess.run(["cp", "--sparse=always", trace, file], check=True)
    with file.open("r+b") as copy:
        copy.seek(HEADER_AT)
        copy.write(HEADER.pack(10000 + rank, 1))
        copy.seek(RANKS_AT)
        copy.write(RANKS.pack(rank, rank % 8, ranks))


def copy_to(folder, traces, ranks):
    folder.mkdir()
    for rank in range(ranks):
        copy_as(traces[rank % 2], folder, rank, ranks)


def write_page(copies):
    """(page, seconds that `devsan view` took)"""
    page = copies.with_suffix(".html")
    begin = time.monotonic()
    subprocess.run([ROOT / ".venv/bin/devsan", "view", "--all-runs", copies, "--html", page], check=True, timeout=600)
    seconds = time.monotonic() - begin
    shutil.rmtree(copies)
    return page, seconds


def measure(running, page):
    """(first paint, filtering, findings): milliseconds, medians of some rounds; and how many findings are listed."""
    paints, filters = [], []
    for _ in range(ROUNDS):
        with browser.visit(running, page, "#notes=1") as visited:
            visited.page.wait_for_timeout(300)
            paints.append(visited.page.evaluate(PAINT))
            findings = visited.text(".ticks output")
            for text in ("mul train", "add cuda", "nothing such", ""):
                filters.append(visited.page.evaluate(FILTER, text))
    return statistics.median(paints), statistics.median(filters), findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[8, 1000], metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", help="leave the pages there")
    options = parser.parse_args()
    print("| Run | Ranks | Findings | Page | `devsan view` | First paint | Filtering |\n| --- | --- | --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as scratch, browser.browser() as running:
        folder = pathlib.Path(scratch)
        traces, hang = record(folder), record_hang(folder)
        for ranks, kind in itertools.product(options.ranks, ("training", "hang")):
            copies = folder / f"{kind}{ranks}"
            if kind == "training":
                copy_to(copies, traces, ranks)
            else:
                make_rank_files(hang, copies, ranks, odd_every=HANGS_EVERY)
            page, seconds = write_page(copies)
            paint, filtering, findings = measure(running, page)
            print(f"| {kind} | {ranks:,} | {findings.split()[0]} | {page.stat().st_size / 1e6:.1f} MB | {seconds:.1f} s | "
                  f"{paint:.0f} ms | {filtering:.0f} ms |", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                shutil.copy(page, options.keep)


if __name__ == "__main__":
    main()
