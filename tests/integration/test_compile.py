"""torch.compile: a finding is told as it is of the same program that is not compiled."""

import os
import re
import subprocess

import pytest

from hooks_programs import line_of
from places import Place

# The mask is a plain attribute, and met in a function that is called by the one that is compiled.
ATTRIBUTE = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.mask = torch.ones(4)  # @cause

    def scaled(self, y):
        return y * self.mask  # @here

    def forward(self, x):
        return self.scaled(torch.relu(self.linear(x))).sum()


work, given = Net().to(DEVICE), [torch.ones(2, 4, device=DEVICE)]
"""

MADE_INSIDE = """
def weighted(y, weight):
    return y * weight  # @here


def work(x):
    y = torch.exp(x)
    weight = torch.full((4,), 2.0)  # @cause
    return weighted(y, weight)


given = [torch.ones(2, 4, device=DEVICE)]
"""

MADE_AND_RETURNED = """
from torch import full


def weight():
    return full((4,), 2.0)  # @cause


def work(x):
    made = taken = weight()
    return torch.exp(x) * made  # @here


given = [torch.ones(2, 4, device=DEVICE)]
"""

MOVED_INSIDE = """
def work(x):
    kept = x.cpu()  # @cause
    return x.exp() - kept  # @here


given = [torch.ones(2, 4, device=DEVICE)]
"""

CLOSED_OVER = """
def make():
    mask = torch.ones(4)

    def work(x):
        y = x * 2
        return torch.add(y, mask)  # @here
    return work


work, given = make(), [torch.ones(2, 4, device=DEVICE)]
"""

GLOBAL = """
BIAS = torch.ones(4)


def work(x):
    return torch.nn.functional.linear(x, torch.ones(4, 4, device=x.device), BIAS)  # @here


given = [torch.ones(2, 4, device=DEVICE)]
"""

ENTRY = """
def work(batch):
    a = batch["a"]
    b = batch["b"]
    return torch.cat([a, b])  # @here


given = [{"a": torch.ones(2, 4, device=DEVICE), "b": torch.ones(2, 4)}]
"""

RESUMED = """
def work(x, other):
    z = x + 1
    print("the graph ends")
    w = z * 2
    return w @ other  # @here


given = [torch.ones(4, 4, device=DEVICE), torch.ones(4, 4)]  # @cause
"""

MOVED_LATER = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.ones(4))

    def forward(self, x):
        return x + self.table  # @here


work, given = Net().to(DEVICE), [torch.ones(2, 4, device=DEVICE)]
before = lambda: setattr(work, "table", work.table.cpu())  # @cause
"""

CASES = {
    "an attribute of a module": ATTRIBUTE,
    "a tensor made in the function": MADE_INSIDE,
    "a tensor that a function returns": MADE_AND_RETURNED,
    "a tensor moved in the function": MOVED_INSIDE,
    "a variable of the function around it": CLOSED_OVER,
    "a global": GLOBAL,
    "an entry of what it was given": ENTRY,
    "after a break of the graph": RESUMED,
    "a buffer that was moved when the graph had run": MOVED_LATER,
}

HEAD = """\
import os
import torch

HOW = os.environ.get("HOW", "")
DEVICE = os.environ.get("DEVICE", "cuda")
before = None
"""

TAIL = """
def run():
    options = dict(word.split("=") for word in HOW.split())
    full = options.pop("fullgraph", "") == "yes"
    call = torch.compile(work, fullgraph=full, **options) if HOW else work
    if before is not None:
        print(call(*given).sum().item())
        before()
    return call(*given)


"""

UNCAUGHT = "run()\n"

CAUGHT = """\
try:
    run()
except RuntimeError:
    print("refused")
print((torch.ones(3) + 1).sum().item())
"""

FALLS_BACK = """\
import torch._dynamo
torch._dynamo.config.suppress_errors = True
run()
"""


@pytest.fixture
def place(devsan, python, tmp_path):
    return Place(devsan, python, tmp_path)


def run(place, case, how, end=UNCAUGHT, out="out"):
    """The findings of a program; `how`: it is compiled with these options."""
    place.out = place.folder / out
    main = place.file("main.py", HEAD + case + TAIL + end)
    place.run(place.python, main, env={"HOW": how})
    report = place.report
    assert report["damage"] == []
    return [f for f in report["findings"] if f["severity"] != "note"]


def told(finding):
    """What a person reads of a finding, apart from the steps of histories and what torch says in other words."""
    at = lambda place: (place["line"], place["function"])
    root = finding["root_cause"]
    return {
        "where": at(finding["where"]),
        "stack": [at(frame) for frame in finding["stack"] if frame["file"].endswith("main.py")],
        "raised": (finding["op"], finding["phase"], finding["handled"], finding["count"]),
        "operands": [(one["arg"], one["name"], one["is"], one["device"], one["shape"], one["dtype"], one["odd"],
                      at(one["lineage"][-1])) for one in finding["operands"]],
        "cause": root and (at(root), root["operand"], root["why"]),
        "fix": finding["fix"] and (finding["fix"]["line"], finding["fix"]["text"]),
    }


@pytest.mark.parametrize("case", CASES)
def test_compiled_code_has_the_finding_that_it_has_when_it_runs(place, case):
    [plain] = run(place, CASES[case], "", out="plain")
    assert place.status == 1
    [compiled] = run(place, CASES[case], "backend=eager")
    assert place.status == 1 and re.search(r"TorchRuntimeError", place.stderr), place.stderr
    text = HEAD + CASES[case]
    assert compiled["where"]["line"] == line_of(text, "here")
    if "# @cause" in text:
        named = [compiled["root_cause"], *compiled["alternatives"]]
        assert line_of(text, "cause") in [one["line"] for one in named], named
    assert told(compiled) == told(plain)


@pytest.mark.parametrize("how", ["backend=eager fullgraph=yes", "backend=aot_eager", "backend=inductor"])
def test_the_finding_is_the_same_with_every_backend(place, how):
    [plain] = run(place, MADE_INSIDE, "", out="plain")
    [compiled] = run(place, MADE_INSIDE, how)
    assert told(compiled) == told(plain)


def test_what_the_function_computed_has_the_steps_of_the_function(place):
    [compiled] = run(place, ATTRIBUTE, "backend=eager")
    text = HEAD + ATTRIBUTE
    forward = next(number for number, line in enumerate(text.splitlines(), 1) if "torch.relu" in line)
    y, mask = compiled["operands"]
    steps = [(step["line"], step["function"], step["op"], step["how"]) for step in y["lineage"]]
    assert steps[:2] == [(forward, "Net.forward", op, "derived") for op in ("aten::relu", "aten::linear")]
    assert y["lineage"][-1]["op"] == "aten::empty.memory_format"  # the weight
    assert [step["line"] for step in mask["lineage"]] == [line_of(text, "cause")]


def test_an_error_that_the_program_catches_is_handled(place):
    [finding] = run(place, MOVED_INSIDE, "backend=eager", CAUGHT)
    place.ended("refused\n6.0\n", place.stderr)
    assert finding["handled"] and finding["severity"] == "warning" and finding["count"] == 1
    assert finding["where"]["line"] == line_of(HEAD + MOVED_INSIDE, "here")


def test_a_function_that_runs_after_all_fails_once(place):
    """dynamo catches its own error, and the program ends of the one that follows."""
    [finding] = run(place, MOVED_INSIDE, "backend=eager", FALLS_BACK)
    assert place.status == 1 and "TorchRuntimeError" in place.stderr
    assert (finding["severity"], finding["handled"], finding["count"]) == ("error", False, 2)
    assert finding["where"]["line"] == line_of(HEAD + MOVED_INSIDE, "here")


def test_halt_ends_a_program_that_torch_compile_fails(place):
    main = place.file("main.py", HEAD + MADE_INSIDE + TAIL + UNCAUGHT)
    place.run(place.python, main, env={"HOW": "backend=eager", "DEVSAN_OPTIONS": "halt=1"})
    assert place.status == 66, place.stderr


@pytest.mark.parametrize("end", [UNCAUGHT, CAUGHT, FALLS_BACK], ids=["uncaught", "caught", "falls back"])
def test_the_program_does_what_it_does_without_devsan(devsan, python, tmp_path, end):
    main = tmp_path / "main.py"
    main.write_text(HEAD + RESUMED + TAIL + end)
    commands = [[python, main], [devsan, "run", "--quiet", "--out", tmp_path / "out", "--", python, main]]
    seen = []
    for command in commands:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=300, cwd=tmp_path,
                              env={**os.environ, "HOW": "backend=eager", "DEVICE": "meta"})
        stderr = re.sub(r"(?m)^([WIE]\d{4}) \S+ \d+ ", r"\1 ", done.stderr)  # the time and the process
        seen.append((done.returncode, done.stdout, re.sub(r"0x[0-9a-f]+", "0x", stderr)))
    assert seen[0] == seen[1]
    assert "the graph ends" in seen[0][1]


# Objects of dynamo's that devsan does not know: another release's.
OTHER_NAMES = """
import torch._dynamo.symbolic_convert as convert


class Other:
    def __get__(self, translator, owner=None):
        return translator.__dict__["other"]

    def __set__(self, translator, value):
        translator.__dict__["other"] = value


convert.InstructionTranslatorBase.current_instruction = Other()
"""


def test_with_a_dynamo_of_another_make_the_call_is_the_place(place):
    [finding] = run(place, MADE_INSIDE + OTHER_NAMES, "backend=eager")
    assert place.status == 1 and "TorchRuntimeError" in place.stderr
    assert finding["where"]["function"] == "run" and "call(*given)" in finding["where"]["source"]
    assert [one["device"] for one in finding["operands"]] == ["cuda:0", "cpu"]


# On the host everything is compiled, by a C++ compiler; then an input comes from elsewhere.
INPUT_ELSEWHERE = """
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)

    def forward(self, x):
        return self.linear(x)  # @here


work, given = Net(), [torch.ones(2, 4)]
before = lambda: given.__setitem__(0, given[0].to(DEVICE))
"""


@pytest.mark.slow
def test_a_graph_that_inductor_compiled_is_compiled_again(place):
    [finding] = run(place, INPUT_ELSEWHERE, "backend=inductor")
    assert place.status == 1 and "TorchRuntimeError" in place.stderr
    assert finding["where"]["line"] == line_of(HEAD + INPUT_ELSEWHERE, "here")
    assert [(one["name"], one["device"]) for one in finding["operands"]] == [
        ("x", "cuda:0"), ("self.linear.weight", "cpu"), ("self.linear.bias", "cpu")]
