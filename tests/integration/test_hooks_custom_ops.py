"""Operators that are not called through at::_ops: torch.ops, TorchScript, operators of the program and of extensions."""

import subprocess

import pytest
from harness import ROOT, Runner
from hooks_programs import found_at, line_of, places

BUILD = """\
import sysconfig, torch
from torch.utils.cpp_extension import include_paths, library_paths
print(int(torch.compiled_with_cxx11_abi()), *("-isystem" + path for path in include_paths()),
      *("-L" + path for path in library_paths()))
"""


@pytest.fixture(scope="session")
def extension(python, tmp_path_factory):
    """tests/integration/hooks_extension.cpp as a shared object."""
    done = subprocess.run([python, "-W", "ignore", "-c", BUILD], capture_output=True, text=True, check=True)
    abi, *paths = done.stdout.split()
    library = tmp_path_factory.mktemp("extension") / "extension.so"
    subprocess.run(["g++", "-std=c++20", "-O1", "-fPIC", "-shared", f"-D_GLIBCXX_USE_CXX11_ABI={abi}", "-o", library,
                    ROOT / "tests/integration/hooks_extension.cpp", *paths, "-ltorch_cpu", "-lc10"], check=True)
    return library


def described(finding):
    return {operand["arg"]: (operand["name"], operand["device"], operand["odd"]) for operand in finding["operands"]}


RAISES = """\
import sys
import torch


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")


class Module(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3, 3, device="cuda"))
        self.mask = torch.ones(3, 3)

    def forward(self, x):
        attempt(lambda: torch.ops.aten.mm.default(x, self.mask))  # @overload
        attempt(lambda: torch.ops.aten.mul(self.weight, self.mask))  # @packet
        attempt(lambda: torch.ops.aten.cat.default([self.weight, self.mask]))  # @list
        attempt(lambda: torch.ops.aten.index_select.default(x, 0, index=index))  # @keyword


library = torch.library.Library("devsan_library", "DEF")
library.define("refuse(Tensor values, Tensor? factors, *, Tensor[] more) -> Tensor")


def refuse(values, factors, *, more):
    raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")


library.impl("refuse", refuse, "CompositeExplicitAutograd")


@torch.library.custom_op("devsan_library::multiply", mutates_args=())
def multiply(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    return values * factors  # @python_kernel


@torch.library.custom_op("devsan_library::decline", mutates_args=())
def decline(values: torch.Tensor, factors: torch.Tensor) -> torch.Tensor:
    raise RuntimeError("Expected all tensors to be on the same device, but found at least two devices")


@torch.jit.script
def scripted(a, b):
    c = a + a
    return torch.mm(c, b)


index = torch.tensor([0])
gpu, cpu = torch.ones(3, 3, device="cuda"), torch.ones(3, 3)
Module()(gpu)
attempt(lambda: torch.ops.devsan_library.refuse(gpu, None, more=[gpu, cpu]))  # @library
attempt(lambda: multiply(gpu, cpu))
attempt(lambda: decline(gpu, factors=cpu))  # @python_complaint
attempt(lambda: scripted(gpu, cpu))  # @script
if len(sys.argv) > 1:
    torch.ops.load_library(sys.argv[1])
    extension = torch.ops.devsan_extension
    attempt(lambda: extension.scale(gpu, cpu))  # @inner_operator
    attempt(lambda: extension.checked(gpu, cpu))  # @check
    attempt(lambda: extension.through_handle(gpu, cpu))  # @handle
    attempt(lambda: extension.with_constant(gpu))  # @constant
    attempt(lambda: extension.lengths_and_constant(gpu, index))  # @lengths
"""
FOUND = {
    "overload": ("aten::mm", {"self": ("x", "cuda:0", False), "mat2": ("self.mask", "cpu", True)}),
    "packet": ("aten::mul.Tensor", {"self": ("self.weight", "cuda:0", False), "other": ("self.mask", "cpu", True)}),
    "list": ("aten::cat", {"tensors[0]": ("self.weight", "cuda:0", False), "tensors[1]": ("self.mask", "cpu", True)}),
    "keyword": ("aten::index_select", {"self": ("x", "cuda:0", False), "index": ("index", "cpu", True)}),
    "library": ("devsan_library::refuse", {"values": ("gpu", "cuda:0", False), "more[0]": ("gpu", "cuda:0", False),
                                           "more[1]": ("cpu", "cpu", True)}),
    "python_kernel": ("aten::mul.Tensor", {"self": ("values", "cuda:0", False), "other": ("factors", "cpu", True)}),
    "python_complaint": ("devsan_library::decline", {"values": ("gpu", "cuda:0", False), "factors": ("cpu", "cpu", True)}),
    "inner_operator": ("devsan_extension::scale", {"values": ("gpu", "cuda:0", False), "factors": ("cpu", "cpu", True)}),
    "check": ("devsan_extension::checked", {"values": ("gpu", "cuda:0", False), "factors": ("cpu", "cpu", True)}),
    "handle": ("devsan_extension::through_handle", {"values": ("gpu", "cuda:0", False), "factors": ("cpu", "cpu", True)}),
}


@pytest.fixture(scope="module")
def raised(devsan, python, extension, tmp_path_factory):
    result = Runner(devsan, python, tmp_path_factory.mktemp("raised"))(RAISES, extension, sim=1)
    assert result.status == 0, result.stderr
    return result


@pytest.mark.parametrize("mark", FOUND)
def test_a_refused_operator_is_found_with_its_operands_and_their_names(raised, mark):
    finding = found_at(raised, RAISES, mark)
    assert (finding["op"], described(finding), finding["count"]) == (*FOUND[mark], 1)


def test_operands_of_scripted_code_are_found_with_their_history(raised):
    finding = found_at(raised, RAISES, "script")
    assert finding["op"] == "aten::mm"
    assert [(operand["arg"], operand["device"], operand["odd"]) for operand in finding["operands"]] == [
        ("self", "cuda:0", False), ("mat2", "cpu", True)]
    sums, ones = finding["operands"][0]["lineage"]
    assert (sums["op"], sums["how"], ones["op"]) == ("aten::add.Tensor", "derived", "aten::ones")


@pytest.mark.parametrize("mark", ["constant", "lengths"])
def test_a_tensor_that_a_kernel_makes_itself_is_told_from_the_operands_it_was_given(raised, mark):
    finding = found_at(raised, RAISES, mark)
    assert finding["op"] == "aten::add.Tensor"
    assert [(operand["arg"], operand["device"]) for operand in finding["operands"]] == [("self", "cuda:0"), ("other", "cpu")]
    assert finding["operands"][1]["lineage"][0]["op"] == "aten::ones"
    assert finding["operands"][1]["name"] is None  # made by the same call that failed, so not called by it


def test_each_refusal_is_one_finding(raised):
    assert len(raised.raised()) == sum("# @" in line for line in RAISES.splitlines()), places(raised)


ALLOWED = """\
import sys
import torch


@torch.library.custom_op("devsan_library::pick", mutates_args=())
def pick(values: torch.Tensor, order: torch.Tensor) -> torch.Tensor:
    return values.clone()


@torch.library.custom_op("devsan_library::join", mutates_args=())
def join(parts: list[torch.Tensor], base: torch.Tensor) -> torch.Tensor:
    return base.clone()


class Passing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})  # @subclass


torch.ops.load_library(sys.argv[1])
gpu, cpu = torch.ones(3, device="cuda"), torch.ones(3)
own = cpu.as_subclass(Passing)
for k in range(3):
    pick(gpu, cpu)  # @python
    join(base=cpu, parts=[gpu, cpu])  # @keywords
    torch.ops.devsan_library.pick.default(cpu, gpu)  # @handle
    pick(gpu, gpu)  # @one device
    pick(gpu, own)
    torch.ops.devsan_extension.pick(gpu, [cpu, gpu])  # @extension
    torch.ops.devsan_extension.pick(gpu, [gpu], torch.tensor(1))  # @scalar
    torch.ops.aten.index.Tensor(gpu, [torch.tensor([1])])  # @index
"""


def test_a_mix_that_a_custom_operator_takes_is_a_note_with_its_operands(run_python, extension):
    result = run_python(ALLOWED, extension, sim=1)
    assert (result.status, result.loud()) == (0, []), result.stderr
    notes = {f["where"]["line"]: f for f in result.findings if f["kind"] == "mixed-operands"}
    seen = {mark: (notes[line]["op"], [o["arg"] for o in notes[line]["operands"]], notes[line]["count"])
            for mark in ("python", "keywords", "handle", "one device", "subclass", "extension", "scalar", "index")
            if (line := line_of(ALLOWED, mark)) in notes}
    assert seen == {
        "python": ("devsan_library::pick", ["values", "order"], 3),
        "keywords": ("devsan_library::join", ["parts[0]", "parts[1]", "base"], 3),
        "handle": ("devsan_library::pick", ["values", "order"], 3),
        "subclass": ("devsan_library::pick", ["values", "order"], 3),
        "extension": ("devsan_extension::pick", ["values", "parts[0]", "parts[1]"], 3),
        "index": ("aten::index.Tensor", ["self", "indices[0]"], 3),
    }


HISTORY = """\
import sys
import torch

torch.ops.load_library(sys.argv[1])
extension = torch.ops.devsan_extension
other = torch.ones(3, device="cuda")


def attempt(body):
    try:
        body()
    except RuntimeError:
        pass


a = torch.zeros(3)  # @made
b = extension.pick(a, [])  # @derived
attempt(lambda: b + other)  # @meet_derived
c = torch.zeros(3, device="cuda:1")  # @gpu
d = extension.to_host(c)  # @moved
attempt(lambda: d + other)  # @meet_moved
e = torch.zeros(3)  # @in_place
e = extension.double_in_place(e)
attempt(lambda: e + other)  # @meet_in_place
f = torch.ops.aten.zeros.default([3])  # @factory
g = torch.ops.aten.neg.default(f)  # @neg
attempt(lambda: g + other)  # @meet_neg
"""
STEPS = {
    "derived": [("derived", "derived", "devsan_extension::pick"), ("made", "created", "aten::zeros")],
    "moved": [("moved", "moved", "devsan_extension::to_host"), ("gpu", "created", "aten::zeros")],
    "in_place": [("in_place", "created", "aten::zeros")],
    "neg": [("neg", "derived", "aten::neg"), ("factory", "created", "aten::zeros")],
}


def test_results_of_custom_operators_and_boxed_calls_have_a_history(run_python, extension):
    result = run_python(HISTORY, extension, sim=2)
    assert result.status == 0, result.stderr
    found = {name: [(step["line"], step["how"], step["op"]) for step in operand["lineage"]] for name in STEPS
             for operand in found_at(result, HISTORY, f"meet_{name}")["operands"][:1]}
    assert found == {name: [(line_of(HISTORY, mark), how, op) for mark, how, op in steps] for name, steps in STEPS.items()}


PASSED_ON = """\
import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Counting(TorchDispatchMode):
    calls = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        Counting.calls += 1
        return function(*args, **(kwargs or {}))


def attempt(body):
    try:
        body()
    except RuntimeError:
        return
    raise AssertionError("nothing was raised")


left, right = torch.ones(3, 3, device="cuda"), torch.ones(3, 3)
with Counting():
    attempt(lambda: left + right)  # @plain
    attempt(lambda: torch.nn.functional.linear(left, right))  # @composite
try:
    raise KeyError
except KeyError:
    attempt(lambda: torch.ones(3, device="meta") * torch.ones(3))  # @kernel of torch
    attempt(lambda: torch.ones(2, device="meta") * torch.ones(2))  # @while another is handled
assert Counting.calls >= 2
"""


def test_an_operator_that_is_only_passed_on_by_python_is_the_one_that_the_program_called(run_python):
    result = run_python(PASSED_ON, sim=1)
    assert result.status == 0, result.stderr
    seen = {mark: found_at(result, PASSED_ON, mark)["op"]
            for mark in ("plain", "composite", "kernel of torch", "while another is handled")}
    assert seen == {"plain": "aten::add.Tensor", "composite": "aten::linear", "kernel of torch": "aten::mul.Tensor",
                    "while another is handled": "aten::mul.Tensor"}
    assert len(result.raised()) == 4, places(result)
