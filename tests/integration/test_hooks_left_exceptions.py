"""What torch's own Python code refuses without an operator: found when nobody catches it, and the program ends as ever."""

import re

import pytest

REFUSED = """
import atexit
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

atexit.register(print, "first registered, last called")
model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
model[1].to("cuda")
atexit.register(print, "last registered, first called")
"""

UNCAUGHT = REFUSED + """
def flatten():
    vector = torch.zeros(3)
    with torch.no_grad():
        try:
            return parameters_to_vector(model.parameters())
        finally:
            torch.ones(2) + 1

flatten()
"""


def test_an_uncaught_complaint_of_torchs_python_code_is_a_finding_with_its_operands(run_python):
    (finding,) = run_python(UNCAUGHT, sim=1).raised()
    assert finding["severity"] == "error"
    assert finding["where"]["function"] == "flatten"
    assert "parameters_to_vector(model.parameters())" in finding["where"]["source"]
    assert finding["message"] == "Found two parameters on different devices, this is currently not supported."
    devices = {operand["name"]: operand["device"] for operand in finding["operands"]}
    assert devices["model[1].weight"] == "cuda:0"
    assert devices["model[0].weight"] == "cpu"
    assert [frame["function"] for frame in finding["stack"]][-1] == "<module>"


def test_the_program_ends_by_its_exception_and_calls_its_handlers_once(run_python):
    observed = run_python(UNCAUGHT, sim=1)
    assert observed.status == 1
    assert observed.stdout == "last registered, first called\nfirst registered, last called\n"
    assert observed.stderr.count("Traceback (most recent call last)") == 1


@pytest.mark.parametrize("ending", ["", "raise SystemExit(3)", "1 / 0"], ids=["well", "by its status", "otherwise"])
def test_a_complaint_that_the_program_catches_is_none(run_python, ending):
    result = run_python(REFUSED + f"""
try:
    parameters_to_vector(model.parameters())
except TypeError as error:
    print("caught", error)
{ending}
""", sim=1)
    assert "caught Found two parameters" in result.stdout
    assert result.raised() == []


def test_a_complaint_of_the_programs_own_is_none(run_python):
    result = run_python(REFUSED + """
def check(one, other):
    if one.device != other.device:
        raise RuntimeError("Expected all tensors to be on the same device")

check(model[0].weight, model[1].weight)
""", sim=1)
    assert result.status == 1
    assert result.raised() == []


def test_an_operator_that_torchs_python_code_calls_is_found_once(run_python):
    result = run_python(REFUSED + "model(torch.ones(1, 2))\n", sim=1)
    assert len(result.raised()) == 1


def test_halt_ends_with_66(run_python):
    result = run_python(UNCAUGHT, sim=1, options=["--halt"])
    assert result.status == 66
    assert result.stdout == "last registered, first called\nfirst registered, last called\n"


def test_a_forked_child_has_its_own_end(run_python):
    result = run_python(REFUSED + """
import os, sys
child = os.fork()
if child == 0:
    parameters_to_vector(model.parameters())
print("the child ended", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
""", sim=1)
    assert result.status == 0, result.stderr
    assert re.search(r"the child ended 1", result.stdout)
    (finding,) = result.raised()
    assert finding["message"].startswith("Found two parameters")
