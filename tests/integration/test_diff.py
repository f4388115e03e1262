"""`devsan diff`: which findings of a run another run has, too, and the exit status for CI."""

import json
import subprocess

import pytest

from harness import Runner

SCALED = """
import torch

class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = torch.nn.Linear(4, 4)
        self.scale = torch.ones(4)

    def forward(self, x):
        return self.proj(x) * self.scale

def train():
    Head().to("cuda")(torch.randn(2, 4, device="cuda"))
"""
SHIFTED = SCALED.replace("class Head", "# A comment\n# of two lines moves all else.\n\nclass Head")
FURTHER = """
def validate():
    mean = torch.zeros(3)
    torch.ones(3, device="cuda") - mean
"""
CAUGHT = """
for run in {runs}:
    try:
        run()
    except RuntimeError:
        {caught}
"""


class Runs:
    """Runs programs once each, from directories of the test's choice."""

    def __init__(self, devsan, python, scratch):
        self.runner = Runner(devsan, python, scratch, start=True)
        self.scratch = scratch

    def __call__(self, directory, text, runs="[train]", caught="raise"):
        program = self.scratch / directory / "job/train.py"
        program.parent.mkdir(parents=True)
        program.write_text(text + CAUGHT.format(runs=runs, caught=caught))
        return self.runner(program, sim=1, options=["--quiet"]).out


@pytest.fixture(scope="module")
def runs(devsan, python, tmp_path_factory):
    scratch = tmp_path_factory.mktemp("diff")
    run = Runs(devsan, python, scratch)
    return {
        "first": run("first", SCALED),
        "shifted": run("shifted", SHIFTED),
        "further": run("further", SCALED + FURTHER, "[train, validate]", "pass"),
        "caught": run("caught", SCALED, "[train]", "pass"),
        "renamed": run("renamed", SCALED.replace("self.scale", "self.weight_of_rows")),
        "clean": run("clean", SCALED.replace("torch.ones(4)", 'torch.ones(4, device="cuda")')),
    }


def diff(devsan, *words, status):
    done = subprocess.run([devsan, "diff", *map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout


def compared(devsan, before, after, *words, status):
    return json.loads(diff(devsan, before, after, "--json", *words, status=status))


def counts(comparison):
    return {name: len(comparison[name]) for name in ("new", "worse", "gone", "same")}


def test_a_finding_whose_line_moved_in_another_checkout_is_the_same(devsan, runs):
    comparison = compared(devsan, runs["first"], runs["shifted"], status=0)
    assert counts(comparison) == {"new": 0, "worse": 0, "gone": 0, "same": 1}
    [pair] = comparison["same"]
    assert pair["after"]["where"]["line"] == pair["before"]["where"]["line"] + 3
    assert pair["before"]["id"] != pair["after"]["id"]


def test_a_further_finding_is_new_and_gone_the_other_way_round(devsan, runs):
    comparison = compared(devsan, runs["caught"], runs["further"], status=1)
    assert counts(comparison) == {"new": 1, "worse": 0, "gone": 0, "same": 1}
    assert comparison["new"][0]["where"]["function"] == "validate"
    comparison = compared(devsan, runs["further"], runs["caught"], status=0)
    assert counts(comparison) == {"new": 0, "worse": 0, "gone": 1, "same": 1}


def test_another_operand_in_the_same_function_is_another_finding(devsan, runs):
    comparison = compared(devsan, runs["first"], runs["renamed"], status=1)
    assert counts(comparison) == {"new": 1, "worse": 0, "gone": 1, "same": 0}


def test_a_finding_that_nobody_catches_any_more_is_worse(devsan, runs):
    comparison = compared(devsan, runs["caught"], runs["first"], status=1)
    assert counts(comparison) == {"new": 0, "worse": 1, "gone": 0, "same": 0}
    assert compared(devsan, runs["first"], runs["caught"], status=0)["same"]


def test_a_report_that_was_kept_as_json_stands_for_its_run(devsan, runs, tmp_path):
    kept = {}
    for name in ("first", "caught", "further"):
        kept[name] = tmp_path / f"{name}.json"
        subprocess.run([devsan, "view", runs[name], "--json", kept[name]], check=True)
    assert counts(compared(devsan, kept["first"], runs["shifted"], status=0))["same"] == 1
    of_reports = compared(devsan, kept["caught"], kept["further"], status=1)
    of_traces = compared(devsan, runs["caught"], runs["further"], status=1)
    assert counts(of_reports) == counts(of_traces)
    assert [one["id"] for one in of_reports["new"]] == [one["id"] for one in of_traces["new"]]


def test_terminal_tells_it_within_80_columns(devsan, runs):
    text = diff(devsan, runs["caught"], runs["further"], status=1)
    assert max(map(len, text.splitlines())) <= 80
    assert text.startswith("New\n  warning[device-mismatch] aten::sub.Tensor\n")
    assert "The same\n  warning[device-mismatch] aten::mul.Tensor" in text
    assert text.endswith("devsan: 1 new, 0 gone, 1 the same\n")
    assert "(was" not in text
    assert "train.py:14 (was 11)" in diff(devsan, runs["first"], runs["shifted"], status=0)


def test_a_run_without_findings_has_nothing_new(devsan, runs):
    assert diff(devsan, runs["first"], runs["clean"], status=0).endswith("devsan: 0 new, 1 gone, 0 the same\n")


def test_what_cannot_be_read_is_told_and_exits_with_2(devsan, runs, tmp_path):
    letter = tmp_path / "letter.json"
    letter.write_text('{"dear": "reader"}')
    for path, told in ((tmp_path / "none", "no such file"), (letter, "not a report"), (tmp_path, "no trace")):
        done = subprocess.run([devsan, "diff", runs["first"], path], capture_output=True, text=True)
        assert done.returncode == 2 and told in done.stderr.lower(), done.stderr
