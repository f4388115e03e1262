"""Runs programs of the corpus under devsan, as forks of one process that has imported torch, and reads their reports."""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
from typing import Callable, NamedTuple

from corpus_programs import Program

FORKS = pathlib.Path(__file__).resolve().parent / "corpus_forks.py"
FEWEST_GPUS = 2
SECONDS = 3000  # for all of them


class Candidates(NamedTuple):
    """Of one failure: {line of the program: {name of a feature: value}}"""
    lines: dict


class Run(NamedTuple):
    status: int | None  # as Popen tells it; None: it took too long
    findings: list


class Reader(NamedTuple):
    """What is taken from the traces of a group of programs."""
    option: str  # of devsan view, which writes JSON for it
    read: Callable  # (that JSON, parsed; {name of a program: what corpus_forks.py says of its end}; paths by name) -> dict


def run(programs: list[Program], devsan: pathlib.Path, python: pathlib.Path, jobs: int) -> dict[pathlib.Path, Run]:
    """What came of each; a program that has no entry was not run. Programs of one name in two folders are told apart."""
    return run_groups(programs, devsan, python, jobs, Reader("--json", read_runs))


def candidates(programs: list[Program], devsan: pathlib.Path, python: pathlib.Path,
               jobs: int) -> dict[pathlib.Path, Candidates]:
    """The candidates of the failure at the line that each marks RAISE; a program without one has no entry."""
    return run_groups(programs, devsan, python, jobs, Reader("--candidates", read_candidates))


def run_groups(programs: list[Program], devsan: pathlib.Path, python: pathlib.Path, jobs: int, reader: Reader) -> dict:
    groups = collections.defaultdict(list)
    for program in programs:
        groups[max(FEWEST_GPUS, program.gpus), program.path.parent].append(program)
    found: dict = {}
    for (gpus, _), some in groups.items():
        found |= run_group(some, gpus, devsan, python, jobs, reader)
    return found


def run_group(programs: list[Program], gpus: int, devsan: pathlib.Path, python: pathlib.Path, jobs: int,
              reader: Reader) -> dict:
    with tempfile.TemporaryDirectory(prefix="devsan-corpus-") as scratch:
        traces = pathlib.Path(scratch) / "traces"
        command = [devsan, "run", "--sim", gpus, "--quiet", "--out", traces, "--", python, FORKS, jobs, SECONDS, scratch,
                   *(program.path.resolve() for program in programs)]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        ended = ended_programs(done.stdout)
        if not ended:
            sys.exit(f"rank: no program ran: {done.stderr.strip().splitlines()[-1:]}")
        written = pathlib.Path(scratch) / "report.json"
        subprocess.run([str(devsan), "view", str(traces), reader.option, str(written)], check=True)
        return reader.read(json.loads(written.read_text()), ended, {program.path.name: program for program in programs})


def read_runs(report: dict, ended: dict, programs: dict[str, Program]) -> dict[pathlib.Path, Run]:
    found = findings_by_process(report)
    return {programs[name].path: Run(told["status"], found[told["pid"]]) for name, told in ended.items()}


def read_candidates(report: dict, ended: dict, programs: dict[str, Program]) -> dict[pathlib.Path, Candidates]:
    failures = collections.defaultdict(list)
    for failure in report["findings"]:
        failures[pathlib.Path(failure["file"] or "").name].append(failure)
    read = {}
    for name in ended:
        program = programs[name]
        mine = [one for one in failures[name] if one["line"] in program.raises]
        if mine:
            lines = {one["line"]: one["features"] for one in mine[0]["candidates"]
                     if pathlib.Path(one["file"]).name == name}
            read[program.path] = Candidates(lines)
    return read


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
