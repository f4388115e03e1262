"""Histories are right or empty, never another's: held against an exact account of random programs."""

import json
import pathlib

import pytest

PROGRAM = pathlib.Path(__file__).with_name("hooks_fuzz_program.py")


def told(operand):
    """The history as [line, how], newest first. One line may do several steps, of which the newest says how."""
    steps = []
    for step in operand["lineage"]:
        if not steps or steps[-1][0] != step["line"]:
            steps.append([step["line"], step["how"]])
    return steps


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_histories_equal_an_exact_account_or_are_empty(run_python, python, seed):
    pytest.importorskip("numpy")
    result = run_python(PROGRAM, seed, 1500, 4, sim=2)
    assert result.status == 0, result.stderr
    expected = json.loads(result.stdout)
    found = {f"{f['where']['file']}:{f['where']['line']}": f for f in result.raised()}
    assert found.keys() == expected.keys()
    wrong, known, empty = [], 0, 0
    for place, accounts in expected.items():
        for operand in found[place]["operands"]:
            account = accounts[operand["arg"]]
            history = told(operand)
            known += account is not None
            empty += account is not None and not history
            if history and history != account:
                wrong.append((place, operand["arg"], history, account))
    assert not wrong, f"{len(wrong)} of {known}: {wrong[:5]}"
    assert len(expected) > 200 and empty <= known // 50, f"{empty} of {known} are empty"
