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
        ended = ended_programs(done.stdout)
        if not ended:
            sys.exit(f"rank: no program ran: {done.stderr.strip().splitlines()[-1:]}")
        report = pathlib.Path(scratch) / "report.json"
        subprocess.run([str(devsan), "view", str(traces), "--json", str(report)], check=True)
        found = findings_by_process(json.loads(report.read_text()))
    paths = {program.path.name: program.path for program in programs}
    return {paths[name]: Run(told["status"], found[told["pid"]]) for name, told in ended.items()}


def ended_programs(output: str) -> dict[str, dict]:
    """{name of a program: what corpus_forks.py says of its end}"""
    told = (json.loads(line) for line in output.splitlines() if line.startswith("{"))
    return {one["program"]: one for one in told}


def findings_by_process(report: dict) -> dict[int, list]:
    """{pid: what was found in that process and in those that it started}"""
    parents = {process["pid"]: process["parent_pid"] for process in report["run"]["processes"]}
    found = collections.defaultdict(list)
    for finding in report["findings"]:
        pid = finding["pid"]
        while pid in parents:
            found[pid].append(finding)
            pid = parents[pid]
    return found
