"""Every name that torch.cuda exports works on simulated devices, or raises an error that names it."""

import json
import textwrap

import pytest

from cuda_names import FOREIGN, REFUSED, SIMULATED
from harness import Runner, is_cuda_build

USE_ALL = """
import json, sys, warnings, torch
warnings.simplefilter("ignore")
uses = json.load(sys.stdin)
c = torch.cuda
t, s = torch.ones(2, device="cuda"), torch.cuda.Stream()
told = {}
for name, use in uses.items():
    try:
        eval(use)
        told[name] = "worked"
    except BaseException as error:
        told[name] = f"{type(error).__name__}: {error}"
names = {name for name in dir(c) if not name.startswith("_")} | set(c.__all__)
print(json.dumps({"names": sorted(names), "told": told}))
"""


@pytest.fixture(scope="module")
def answers(devsan, python, torch_version, tmp_path_factory):
    if is_cuda_build(python) or torch_version != (2, 13):
        pytest.skip("the lists are those of the CPU build of torch 2.13")
    uses = {**SIMULATED, **{name: use for name, (use, _) in REFUSED.items()}}
    runner = Runner(devsan, python, tmp_path_factory.mktemp("names"))
    result = runner(textwrap.dedent(USE_ALL), sim=2, stdin=json.dumps(uses))
    assert result.status == 0, result.stderr
    return json.loads(result.stdout.splitlines()[-1])


def test_every_exported_name_is_listed_once(answers):
    listed = [*SIMULATED, *REFUSED, *FOREIGN]
    assert len(listed) == len(set(listed))
    assert sorted(listed) == answers["names"]


def test_what_is_listed_as_simulated_works(answers):
    names = set(answers["names"])
    assert {name: told for name in SIMULATED if name in names and (told := answers["told"][name]) != "worked"} == {}


def test_what_is_listed_as_refused_raises_an_error_that_names_it(answers):
    names = set(answers["names"])
    wrong = {name: told for name, (_, words) in REFUSED.items()
             if name in names and ((told := answers["told"][name]) == "worked" or words.lower() not in told.lower())}
    assert wrong == {}
