"""Each program of the corpus on as many simulated devices as it says that it needs: what PyTorch refuses is reported
at its line, so is what it lets pass although it should not, and a correct program is left in peace."""

import functools
import re
import sys
import zlib

import pytest

from harness import ROOT, Runner

sys.path.insert(0, str(ROOT / "scripts"))
import corpus_run  # noqa: E402 - found by the line above
from corpus_programs import corpus  # noqa: E402
from corpus_score import Score, judge  # noqa: E402

CORPUS = {program.path: program for program in corpus()}

def devices(program):
    """How many the program says it needs; one that says nothing has a single one, and fails if it asks for more."""
    said = re.search(r"^# needs: (\d+) GPUs$", program.read_text(), re.M)
    return int(said[1]) if said else 1


def marked_line(program, mark):
    lines = [number for number, line in enumerate(program.read_text().splitlines(), 1) if mark in line]
    assert len(lines) == 1, f"{program.name} should have one line with {mark}"
    return lines[0]


def of_kind(kind):
    return [pytest.param(path, id=path.stem) for path, program in CORPUS.items() if program.expect == kind]


@pytest.fixture(scope="module")
def refused(devsan, python, tmp_path_factory):
    """Runs a program once for all tests that look at it."""
    run = Runner(devsan, python, tmp_path_factory.mktemp("refused"))
    return functools.cache(lambda program: run(program, sim=devices(program)))


@pytest.mark.parametrize("program", of_kind("raises"))
def test_refused_operator_is_reported_at_its_line(refused, program):
    result = refused(program)
    assert result.status == 1, result.stderr
    findings = result.raised()
    assert len(findings) == 1, [(f["kind"], f["where"]) for f in result.findings]
    finding = findings[0]
    assert finding["severity"] == "error"
    assert finding["where"]["file"].endswith(program.name)
    assert finding["where"]["line"] in CORPUS[program].raises
    assert finding["message"].splitlines()[0] in result.stderr
    odd = [operand for operand in finding["operands"] if operand["odd"]]
    assert odd, finding["operands"]
    # All may be on one device where the host reads one of them.
    others = {operand["device"] for operand in finding["operands"]} - {odd[0]["device"]}
    assert others or odd[0]["device"] != "cpu"


def test_causes_of_most_programs_that_the_ranking_was_fitted_to_are_marked_lines(devsan, python):
    """scripts/rank says how it does on programs that it was not fitted to: no threshold stands for that."""
    train = [program for path, program in CORPUS.items() if program.expect == "raises" and path.parent.name == "train"]
    some = [program for program in train if zlib.crc32(program.path.stem.encode()) % 8 == 0]
    assert len(some) >= 60
    runs = corpus_run.run(some, devsan, python, jobs=1)
    counts = Score.counts([judge(program, runs.get(program.path)) for program in some])
    assert counts["verdict"] == len(some)
    assert counts["good"] >= 0.75 * len(some) and counts["three"] >= 0.9 * len(some), counts


@pytest.mark.parametrize("program", of_kind("silent"))
def test_what_pytorch_lets_pass_is_reported_at_its_line(run_python, program):
    result = run_python(program, sim=devices(program))
    assert result.status == 0, result.stderr
    told = [(f["kind"], f["where"]["line"], f["root_cause"] and f["root_cause"]["line"]) for f in result.loud()]
    assert len(told) == 1, told
    kind, line, cause = told[0]
    assert kind in CORPUS[program].kinds
    assert line == marked_line(program, "# RAISE")
    assert cause == marked_line(program, "# ROOT")
    finding = result.loud()[0]
    assert finding["severity"] == "warning" and not finding["raised"]
    assert finding["count"] >= 1 and finding["per_step"] > 0 and finding["bytes"] > 0
    assert finding["fix"]["file"].endswith(program.name)


@pytest.mark.parametrize("program", of_kind("clean"))
def test_correct_program_is_left_in_peace(run_python, program):
    result = run_python(program, sim=devices(program))
    assert result.status == 0, result.stderr
    assert result.loud() == []
    assert result.stderr == ""


def test_every_program_says_what_is_expected_of_it():
    assert len(CORPUS) == len([*(ROOT / "corpus").glob("*/[0-9]*.py")])
    kinds = [program.expect for program in CORPUS.values()]
    assert kinds.count("raises") >= 12 and kinds.count("silent") >= 12 and kinds.count("clean") >= 3
    assert set(kinds) == {"raises", "silent", "clean"}
