"""Whatever fails inside a backward is told with the forward line that made the node."""

import pytest
from harness import Runner
from hooks_programs import found_at, line_of, places

# Each function fails in a backward at the line marked as its own, for a node that the line marked `NAME_forward` made.
WAYS = """\
import torch
from torch.utils.checkpoint import checkpoint

here, there = "cuda", "cpu"
elsewhere = torch.ones(3, device=there)


def leaf():
    return torch.ones(3, device=here, requires_grad=True)


def plus_elsewhere(grad):
    return grad + elsewhere


class Plain(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * elsewhere  # @function


class RecordsInside(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        with torch.enable_grad():
            return (x.detach().requires_grad_() * 2).detach()

    @staticmethod
    def backward(ctx, grad):
        return grad * elsewhere  # @records_inside


class Outer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Plain.apply(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * elsewhere  # @function_in_function


def function():
    y = Plain.apply(leaf())  # @function_forward
    y.sum().backward()


def records_inside():
    y = RecordsInside.apply(leaf())  # @records_inside_forward
    y.sum().backward()


def function_in_function():
    y = Outer.apply(leaf())  # @function_in_function_forward
    y.sum().backward()


def function_without_operators():
    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * elsewhere  # @function_without_operators

    x = leaf()
    y = Nothing.apply(x)  # @function_without_operators_forward
    z = x * 3
    torch.autograd.grad(y.sum(), x)


def tensor_hook():
    y = leaf() * 2  # @tensor_hook_forward
    y.register_hook(lambda grad: grad + elsewhere)  # @tensor_hook
    y.sum().backward()


def node_hook():
    y = leaf() * 2  # @node_hook_forward
    y.grad_fn.register_prehook(lambda grads: (grads[0] + elsewhere,))  # @node_hook
    y.sum().backward()


def module_hook():
    module = torch.nn.Tanh()
    module.register_full_backward_hook(lambda module, inner, outer: (inner[0] + elsewhere,))  # @module_hook
    y = module(leaf())  # @module_hook_forward
    y.sum().backward()


def module_pre_hook():
    module = torch.nn.Tanh()
    module.register_full_backward_pre_hook(lambda module, grads: (grads[0] + elsewhere,))  # @module_pre_hook
    y = module(leaf())  # @module_pre_hook_forward
    y.sum().backward()


def grad():
    x = leaf()
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.to(there), lambda tensor: tensor):
        y = x * x.detach()  # @grad_forward
    torch.autograd.grad(y.sum(), x)  # @grad


def double_backward():
    x = leaf()
    y = x ** 3  # @double_backward_forward
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: tensor.to(there), lambda tensor: tensor):
        slope, = torch.autograd.grad(y.sum(), x, create_graph=True)
    slope.sum().backward()  # @double_backward


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x ** 3

    @staticmethod
    def backward(ctx, grad):
        y = grad * Plain.apply(ctx.saved_tensors[0])  # @double_backward_of_function_forward
        return y


def double_backward_of_function():
    x = leaf()
    slope, = torch.autograd.grad(Cube.apply(x).sum(), x, create_graph=True)
    slope.sum().backward()


def moves(where):
    # The block runs on this device when it is first run, and on the other when backward runs it again.
    yield where
    while True:
        yield there


def reentrant_checkpoint():
    places = moves(here)

    def block(x):
        return x * torch.ones(3, device=next(places))  # @reentrant_checkpoint

    y = checkpoint(block, leaf(), use_reentrant=True)  # @reentrant_checkpoint_forward
    y.sum().backward()


def plain_checkpoint():
    places = moves(here)

    def block(x):
        y = x + torch.ones(3, device=next(places))  # @plain_checkpoint
        return y.sin()  # @plain_checkpoint_forward

    checkpoint(block, leaf(), use_reentrant=False).sum().backward()


def hook_in_checkpoint():
    def block(x):
        y = x.sin()  # @hook_in_checkpoint_forward
        if y.requires_grad:
            y.register_hook(lambda grad: grad + elsewhere)  # @hook_in_checkpoint
        return y * 2

    checkpoint(block, leaf(), use_reentrant=True).sum().backward()


@torch.library.custom_op("devsan_test::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


twice.register_autograd(lambda ctx, grad: grad * elsewhere)  # @custom_op


def custom_op():
    y = twice(leaf())  # @custom_op_forward
    y.sum().backward()


for way in ("function", "records_inside", "function_in_function", "function_without_operators", "tensor_hook", "node_hook",
            "module_hook", "module_pre_hook", "grad", "double_backward", "double_backward_of_function",
            "reentrant_checkpoint", "plain_checkpoint", "hook_in_checkpoint", "custom_op"):
    try:
        globals()[way]()
    except RuntimeError as error:
        assert "same device" in str(error), error
        continue
    raise AssertionError(f"{way}: nothing was raised")
"""
WAY_NAMES = [line.split("# @")[1].removesuffix("_forward") for line in WAYS.splitlines() if line.endswith("_forward")]


@pytest.fixture(scope="module")
def ways_run(devsan, python, tmp_path_factory):
    result = Runner(devsan, python, tmp_path_factory.mktemp("ways"))(WAYS, sim=1)
    assert result.status == 0, result.stderr
    return result


@pytest.mark.parametrize("way", WAY_NAMES)
def test_whatever_fails_in_backward_names_the_forward_line(ways_run, way):
    where = "function" if way == "double_backward_of_function" else way
    forward = line_of(WAYS, f"{way}_forward")
    line = line_of(WAYS, where)
    found = [f for f in ways_run.raised() if f["where"]["line"] == line and f["forward"]]
    lines = [f["forward"][-1]["line"] for f in found]
    assert forward in lines, (way, line, forward, lines, places(ways_run))
    assert {f["phase"] for f in found} == {"backward"}


COMPILED = """\
import torch


def double(x):
    return (x * 2).sin()


def fails(grad):
    return grad + torch.ones(3)  # @hook


leaf = torch.ones(3, device="cuda", requires_grad=True)
y = torch.compile(double, backend=BACKEND)(leaf)  # @call
y.register_hook(fails)
try:
    y.sum().backward()
except RuntimeError:
    print("caught")
"""


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_backward_of_compiled_code_names_the_function_that_was_compiled(run_python, backend):
    source = COMPILED.replace("BACKEND", repr(backend))
    result = run_python(source, sim=1)
    assert (result.status, result.stdout) == (0, "caught\n"), result.stderr
    finding = found_at(result, source, "hook")
    assert finding["forward"] and finding["forward"][-1]["function"] == "double"
