"""However an operator is reached, PyTorch's complaint about devices gives a finding."""

import pytest
from hooks_programs import HELPERS, line_of, places

WAYS = """\
import torch
import torch.utils._pytree
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode


""" + HELPERS + """

@torch.library.custom_op("devsan_test::multiply", mutates_args=())
def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a * b  # @custom_op


@torch.jit.script
def scripted(a, b):
    return a * b + a


class Function(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))  # @function_mode


class Dispatch(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        def unwrap(one):
            return one.inner if isinstance(one, Wrapped) else one
        args = torch.utils._pytree.tree_map(unwrap, args)
        return function(*args, **(kwargs or {}))


def function_mode():
    with Function():
        return a + b


def dispatch_mode():
    with Dispatch():
        return a + b  # @dispatch_mode


a, b = gpu(), torch.ones(3)
square, other = gpu(3, 3), torch.ones(3, 3)
index = torch.tensor([0])
with FakeTensorMode():
    fake, fake_other = torch.ones(3, device="cuda"), torch.ones(3)

attempt(lambda: a + b)  # @operator
attempt(lambda: a.add_(b))  # @in_place
attempt(lambda: torch.add(a, b, out=torch.empty(3)))  # @out
attempt(lambda: torch.ops.aten.add(a, b))  # @packet
attempt(lambda: torch.ops.aten.add.Tensor(a, b))  # @overload
attempt(lambda: torch.ops.aten.mm.default(square, other))  # @boxed_mm
attempt(lambda: torch.ops.aten.cat.default([square, other]))  # @boxed_cat
attempt(lambda: torch.ops.aten.index_select.default(square, 0, index))  # @boxed_index
attempt(lambda: torch.ops.aten.embedding.default(square, index))  # @boxed_embedding
attempt(lambda: torch.ops.aten.nll_loss_forward.default(square, torch.tensor([0, 1, 2]), None, 1, -100))  # @boxed_loss
attempt(lambda: torch.ops.devsan_test.multiply(a, b))
attempt(lambda: scripted(a, b))  # @script
attempt(lambda: torch.func.vmap(torch.mul)(square, other))  # @vmap
attempt(lambda: torch.func.grad(lambda x, y: (x * y).sum())(square, other))  # @grad
attempt(lambda: torch.func.functional_call(torch.nn.Linear(3, 3), {}, (a,)))  # @functional_call
attempt(lambda: torch._foreach_add([a], [b]))  # @foreach
attempt(lambda: torch.nn.functional.linear(a, other))  # @linear
attempt(lambda: torch.stack([a, b]))  # @stack
attempt(function_mode)
attempt(dispatch_mode)
attempt(lambda: Wrapped(a) * Wrapped(b))  # @subclass
attempt(lambda: fake + fake_other)  # @fake
attempt(lambda: torch.ops.aten.add.Tensor(fake, fake_other))  # @boxed_fake
attempt(lambda: torch.ops.aten.mul.Tensor(torch.ones(3, device="meta"), b))  # @boxed_meta
attempt(lambda: torch.jit.trace(lambda x: x + b, (a,)))  # @trace
attempt(lambda: torch.randn(3, device="cuda", generator=torch.Generator("cpu")))  # @generator
attempt(lambda: torch.nested.nested_tensor([a, b]) + torch.nested.nested_tensor([b, a], device="cpu"))  # @nested
"""
MARKS = [line.split("# @")[1].split()[0] for line in WAYS.splitlines() if "# @" in line]


@pytest.fixture(scope="module")
def found_lines(devsan, python, tmp_path_factory):
    from harness import Runner
    result = Runner(devsan, python, tmp_path_factory.mktemp("ways"))(WAYS, sim=1)
    assert result.status == 0, result.stderr
    lines = {}
    for finding in result.raised():
        for line in {frame["line"] for frame in finding["stack"]}:
            lines.setdefault(line, []).append(finding)
    return lines, places(result)


@pytest.mark.parametrize("mark", MARKS)
def test_a_refused_operator_gives_one_finding_however_it_is_called(found_lines, mark):
    lines, all_places = found_lines
    found = lines.get(line_of(WAYS, mark), [])
    assert len(found) == 1, f"{mark}: {len(found)} of {all_places}"
    assert "device" in found[0]["message"]
    assert (found[0]["count"], found[0]["handled"]) == (1, True)
