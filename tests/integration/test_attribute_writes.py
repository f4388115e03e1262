"""Attributes of modules that a library writes over: who wrote what, and the misplacement that follows."""

import json
import subprocess
import textwrap

import jsonschema
import pytest

from harness import ROOT, view
from library_environment import LibraryRunner, make_environment

DEEPSPEED_0_15_4 = ROOT / "tests/integration/deepspeed_0_15_4_requirements.txt"

# Experts that find their device by a number which they call `id`.
EXPERTS = """
    import torch
    from torch import nn

    class Expert(nn.Module):
        def __init__(self, id):
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.id = id

        def forward(self, x):
            device = f"cuda:{int(self.id == 1)}"
            self.linear.to(device)
            return self.linear(x.to(device)).to(x.device)

    class Mixture(nn.Module):
        def __init__(self):
            super().__init__()
            self.experts = nn.ModuleList(Expert(1) for _ in range(3))

        def forward(self, x):
            return sum(expert(x) for expert in self.experts)
"""
LIBRARY = """
    def number_modules(module, count=[0]):
        count[0] += 1
        module.id = count[0]
        for child in module.children():
            number_modules(child, count)
"""
TRAIN = """
    def main():
        model = Mixture()
        number_modules(model)
        for step in range(2):
            model(torch.randn(4, 8, device="cuda:0")).sum().backward()

    main()
"""


@pytest.fixture
def with_library(run_python, tmp_path):
    """Runs a program that imports number_modules from an installed library."""
    folder = tmp_path / "site-packages/numbering"
    folder.mkdir(parents=True)

    def run(program, library=LIBRARY, **kwargs):
        (folder / "__init__.py").write_text(textwrap.dedent(library))
        source = EXPERTS + "    from numbering import number_modules\n" + program
        return run_python(source, sim=2, start=True, env={"PYTHONPATH": str(folder.parent)}, **kwargs)

    return run


def overwritten(run):
    assert run.status == 0, run.stderr
    return [f for f in run.findings if f["kind"] == "attribute-overwritten"]


def test_a_library_that_writes_over_an_attribute_is_told_with_both_writers(with_library):
    run = with_library(TRAIN)
    [finding] = overwritten(run)
    assert finding["severity"] == "warning"
    assert finding["attribute"] == "Expert.id"
    first, last = finding["writers"]
    assert (first["source"].strip(), first["value"], first["when"]) == ("self.id = id", "1", "first")
    assert (last["source"].strip(), last["when"]) == ("module.id = count[0]", "last")
    assert last["file"].endswith("site-packages/numbering/__init__.py")
    assert finding["where"]["line"] == last["line"]
    assert finding["fix"]["line"] == first["line"]


def test_the_misplacement_that_follows_names_the_writers(with_library, tmp_path):
    (tmp_path / "rules.toml").write_text('expect = "experts on cuda:1"')
    run = with_library(TRAIN, options=["--rules", tmp_path / "rules.toml"])
    misplaced = [f for f in run.findings if f["kind"] == "wrong-placement"]
    assert misplaced
    for finding in misplaced:
        assert [writer["when"] for writer in finding["writers"]] == ["first", "last"]
        assert "`Expert.id` was 1" in finding["root_cause"]["why"]
    jsonschema.validate(view(run.devsan, run.out), json.loads((ROOT / "report/render/report.schema.json").read_text()))


@pytest.mark.parametrize("program", [
    "    model = Mixture()\n    for expert in model.experts: expert.id = 5\n",  # by the program itself
    "    model = Mixture()\n    number_modules(nn.Sequential(nn.Linear(2, 2)))\n",  # what the class never had
    "    Mixture().train().eval().requires_grad_(False)\n",  # by torch
    "    model = Mixture()\n    for count in (0, 1): model.experts[0].id = 1\n",
], ids=["program", "new", "torch", "same"])
def test_writes_that_are_somebodys_own_business_are_no_finding(with_library, program):
    assert overwritten(with_library(program + "    torch.ones(1) + 1\n")) == []


def test_what_is_no_place_may_be_overwritten(with_library):
    library = """
        def number_modules(module):
            for child in module.modules():
                child.note, child.training, child.rate = "busy", False, 0.5
    """
    program = """
    class Noted(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.note, self.rate = "idle", 0.1

    for _ in range(2):
        number_modules(Noted())
    """
    assert overwritten(with_library(program, library)) == []


def test_a_library_may_write_what_its_own_class_has(with_library):
    library = """
        from torch import nn

        class Base(nn.Module):
            pass

        def number_modules(module):
            module.id = 7
    """
    program = """
    from numbering import Base

    class Own(Base):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)
            self.id = 1

    for _ in range(2):
        number_modules(Own())
    """
    assert overwritten(with_library(program, library)) == []


def test_functions_and_classes_are_those_of_torch(with_library):
    program = """
    import inspect
    torch.ones(1) + 1
    Mixture()
    print(nn.Module.__setattr__ is nn.Module.__dict__["__setattr__"], nn.Module.__setattr__.__qualname__)
    print(inspect.getsource(nn.Module.__setattr__).splitlines()[0].strip()[:17])
    try:
        nn.Linear(2, 2).weight = 3
    except TypeError as error:
        print(error)
    """
    run = with_library(program)
    assert run.stdout.splitlines() == [
        "True Module.__setattr__", "def __setattr__(s",
        "cannot assign 'int' as parameter 'weight' (torch.nn.Parameter or None expected)"]


# Its own function registers hooks for an engine that is not there: they are taken off before the forward.
DEEPSPEED = """
    from deepspeed.runtime.zero.parameter_offload import DeepSpeedZeRoOffload

    class Offload(DeepSpeedZeRoOffload):
        def __init__(self):
            self.forward_hooks, self.backward_hooks = [], []

    def main():
        model = Mixture()
        Offload()._register_hooks_recursively(model)
        for module in model.modules():
            module._forward_hooks.clear()
            module._forward_pre_hooks.clear()
        model(torch.randn(4, 8, device="cuda:0")).sum().backward()

    main()
"""


@pytest.fixture(scope="module")
def deepspeed_0_15_4(python):
    return make_environment(python, DEEPSPEED_0_15_4)


@pytest.mark.slow
def test_deepspeed_0_15_4_numbers_modules_by_an_attribute_of_theirs(devsan, deepspeed_0_15_4, tmp_path):
    """Issue 6772 of DeepSpeed: the experts of a mixture took the number for their device."""
    (tmp_path / "rules.toml").write_text('expect = "experts on cuda:1"')
    runner = LibraryRunner(devsan, deepspeed_0_15_4, tmp_path, start=True)
    run = runner(EXPERTS + DEEPSPEED, sim=2, env=runner.SETTINGS, options=["--rules", tmp_path / "rules.toml"])
    [finding] = overwritten(run)
    assert finding["attribute"] == "Expert.id"
    assert "deepspeed/runtime/zero/parameter_offload.py" in finding["where"]["file"]
    assert finding["where"]["source"].strip() == "module.id = my_count"
    assert finding["writers"][0]["source"].strip() == "self.id = id"
    assert any(f["kind"] == "wrong-placement" and f.get("writers") for f in run.findings)
