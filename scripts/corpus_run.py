"""Runs programs of the corpus under devsan, as forks of one process that has imported torch, and reads their reports."""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import NamedTuple

from corpus_programs import Program

FORKS = pathlib.Path(__file__).resolve().parent / "corpus_forks.py"
FEWEST_GPUS = 2
SECONDS = 3000  # for all of them


class Run(NamedTuple):
    status: int | None  # as Popen tells it; None: it took too long
    findings: list


def run(programs: list[Program], devsan: pathlib.Path, python: pathlib.Path, jobs: int) -> dict[pathlib.Path, Run]:
    """What came of each; a program that has no entry was not run. Programs of one name in two folders are told apart."""
    groups = collections.defaultdict(list)
    for program in programs:
        groups[max(FEWEST_GPUS, program.gpus), program.path.parent].append(program)
    runs: dict = {}
    for (gpus, _), some in groups.items():
        runs |= run_group(some, gpus, devsan, python, jobs)
    return runs


def run_group(programs: list[Program], gpus: int, devsan: pathlib.Path, python: pathlib.Path, jobs: int) -> dict:
    with tempfile.TemporaryDirectory(prefix="devsan-corpus-") as scratch:
        traces = pathlib.Path(scratch) / "traces"
        command = [devsan, "run", "--sim", gpus, "--quiet", "--out", traces, "--", python, FORKS, jobs, SECONDS, scratch,
                   *(program.path.resolve() for program in programs)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        ended = {told["pid"]: told for told in map(json.loads, done.stdout.splitlines())}
        if not ended:
            sys.exit(f"rank: no program ran: {done.stderr.strip().splitlines()[-1:]}")
        report = pathlib.Path(scratch) / "report.json"
        subprocess.run([str(devsan), "view", str(traces), "--json", str(report)], check=True)
        found = findings_by_program(json.loads(report.read_text()), ended)
    paths = {program.path.name: program.path for program in programs}
    return {paths[told["program"]]: Run(told["status"], found[pid]) for pid, told in ended.items()}


def findings_by_program(report: dict, ended: dict) -> dict:
    """Those of the processes that a program started count as its own."""
    parents = {process["pid"]: process["parent_pid"] for process in report["run"]["processes"]}
    found = collections.defaultdict(list)
    for finding in report["findings"]:
        pid = finding["pid"]
        while pid not in ended and pid in parents:
            pid = parents[pid]
        found[pid].append(finding)
    return found
