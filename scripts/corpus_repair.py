"""Whether the first patch of a report repairs its program: it then runs to its end, and nothing is found any more.

The first patch is that of the cause, or, where that line has none, that of the first alternative that has one.
"""

import pathlib
import re
import subprocess
import tempfile
from typing import NamedTuple

import corpus_run
from corpus_programs import Program


class Repair(NamedTuple):
    program: Program
    patched: bool  # there was a patch, and `patch` took it
    repaired: bool
    told: str
    at_cause: bool  # the patch is that of the line that the report names first


def repairs(programs: list[Program], runs: dict, devsan: pathlib.Path, python: pathlib.Path, jobs: int) -> list[Repair]:
    """One for each program that PyTorch refuses. `runs`: of the programs as they are."""
    refused = [program for program in programs if program.expect == "raises"]
    with tempfile.TemporaryDirectory(prefix="devsan-repair-") as scratch:
        changed = {program.path: changed_program(program, runs.get(program.path), pathlib.Path(scratch))
                   for program in refused}
        again = corpus_run.run([program for program, _ in changed.values() if program], devsan, python, jobs)
    return [repair(program, *changed[program.path], again, bool(cause_patches(refusal(runs.get(program.path)))))
            for program in refused]


def changed_program(program: Program, run, scratch: pathlib.Path):
    """(the program after its first patch, why there is none)"""
    patch = first_patch(run)
    if not patch:
        return None, "no patch"
    folder = scratch / program.path.parent.name
    folder.mkdir(exist_ok=True)
    target = folder / program.path.name
    target.write_text(program.path.read_text())
    done = subprocess.run(["patch", "--quiet", "--batch", str(target)], input=patch["diff"], text=True, capture_output=True)
    if done.returncode:
        return None, f"the patch does not apply: {done.stdout.strip()}"
    return program._replace(path=target), changed_lines(patch["diff"])


def refusal(run) -> dict | None:
    """The finding about what PyTorch refused first."""
    return next((one for one in (run.findings if run else []) if one["kind"] == "device-mismatch" and one["raised"]), None)


def cause_patches(finding: dict | None) -> list[dict]:
    return (finding["fix"] or {}).get("patches", []) if finding else []


def first_patch(run) -> dict | None:
    finding = refusal(run)
    alternatives = [one["fix"] for one in finding["alternatives"]] if finding else []
    patches = [*cause_patches(finding), *(patch for fix in alternatives if fix for patch in fix["patches"])]
    return patches[0] if patches else None


def changed_lines(diff: str) -> str:
    return " | ".join(line.strip() for line in re.findall(r"^[-+](?![-+]).*$", diff, re.M))


def repair(program: Program, changed: Program | None, told: str, again: dict, at_cause: bool) -> Repair:
    name = program.path.name
    run = again.get(changed.path) if changed else None
    if run is None:
        return Repair(program, False, False, f"{name}: {told}", at_cause)
    errors = [one["kind"] for one in run.findings if one["severity"] == "error"]
    told = f"{name}: {told}; ended {run.status}, {errors}"
    return Repair(program, True, run.status == 0 and not errors, told, at_cause)
