"""Failures inside a backward, and the counting of training steps."""

import pytest
from hooks_programs import found_at, line_of, places

# Gradients that come on another device than the forward's, by a custom function whose backward is wrong.
FAILS_IN_FUNCTION = """\
import torch


class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * torch.ones(3, device=OTHER)  # @backward


leaf = torch.ones(3, device=MINE, requires_grad=True)
loss = Scale.apply(leaf).sum()  # @apply
try:
    loss.backward()  # @call
except RuntimeError:
    print("caught")
"""


@pytest.mark.parametrize("mine, other", [("cpu", "cuda"), ("cuda:1", "cuda:0")])
def test_a_custom_function_that_fails_in_backward_is_found_there(run_python, mine, other):
    source = FAILS_IN_FUNCTION.replace("MINE", repr(mine)).replace("OTHER", repr(other))
    result = run_python(source, sim=2)
    assert (result.status, result.stdout) == (0, "caught\n"), result.stderr
    finding = found_at(result, source, "backward")
    assert (finding["phase"], finding["op"]) == ("backward", "aten::mul.Tensor")
    assert [frame["line"] for frame in finding["forward"]][-1] == line_of(source, "apply")


# A tensor saved for backward is replaced by one on the other device, so that torch's own formula fails.
FAILS_IN_ENGINE = """\
import torch


def pack(tensor):
    return tensor.to(OTHER)


def unpack(tensor):
    return tensor


leaf = torch.ones(3, 3, device=MINE, requires_grad=True)
weight = torch.ones(3, 3, device=MINE)
with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
    out = leaf @ weight  # @forward
loss = out.sum()
loss.backward()  # @call
"""


@pytest.mark.parametrize("mine, other", [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_formula_of_torch_that_fails_in_backward_points_at_the_call_and_at_the_forward(run_python, mine, other):
    source = FAILS_IN_ENGINE.replace("MINE", repr(mine)).replace("OTHER", repr(other))
    result = run_python(source, sim=1)
    assert result.status == 1
    finding = found_at(result, source, "call")
    assert (finding["phase"], finding["severity"]) == ("backward", "error")
    assert [frame["line"] for frame in finding["forward"]][-1] == line_of(source, "forward")


CHECKPOINTED = """\
import torch
from torch.utils.checkpoint import checkpoint

bias = {"device": MINE}
calls = []


def block(x):
    calls.append(1)
    return (x * 2 + torch.ones(3, device=bias["device"])).sin()  # @block


leaf = torch.ones(3, device=MINE, requires_grad=True)
out = checkpoint(block, leaf, use_reentrant=REENTRANT)
bias["device"] = OTHER
try:
    out.sum().backward()
except RuntimeError:
    print(len(calls))
"""


@pytest.mark.parametrize("mine, other, reentrant", [("cpu", "cuda", True), ("cuda", "cpu", False)])
def test_a_checkpointed_block_that_fails_when_it_is_run_again_is_found_in_the_block(run_python, mine, other, reentrant):
    source = CHECKPOINTED.replace("MINE", repr(mine)).replace("OTHER", repr(other))
    source = source.replace("REENTRANT", str(reentrant))
    result = run_python(source, sim=1)
    assert (result.status, result.stdout) == (0, "2\n"), result.stderr
    finding = found_at(result, source, "block")
    assert (finding["phase"], finding["step"]) == ("backward", 0)


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
        y = (x * 2).sin()  # @plain_checkpoint_forward
        return y + torch.ones(3, device=next(places))  # @plain_checkpoint

    checkpoint(block, leaf(), use_reentrant=False).sum().backward()


def hook_in_checkpoint():
    def block(x):
        y = x.sin()  # @hook_in_checkpoint_forward
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
    except RuntimeError:
        continue
    raise AssertionError(f"{way}: nothing was raised")
"""
WAY_NAMES = [line.split("# @")[1].removesuffix("_forward") for line in WAYS.splitlines() if line.endswith("_forward")]


@pytest.fixture(scope="module")
def ways_run(devsan, python, tmp_path_factory):
    from harness import Runner
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
def test_backward_of_compiled_code_names_a_line_of_the_program(run_python, backend):
    source = COMPILED.replace("BACKEND", repr(backend))
    result = run_python(source, sim=1)
    assert (result.status, result.stdout) == (0, "caught\n"), result.stderr
    finding = found_at(result, source, "hook")
    expected = {"eager": "return (x * 2).sin()", "aot_eager": "torch.compile(double, backend='aot_eager')"}
    assert finding["forward"] and expected[backend] in finding["forward"][-1]["source"]


STEPS = """\
import torch

model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 3))
optimizer = torch.optim.SGD([{"params": model[0].parameters()}, {"params": model[1].parameters()}], lr=0.1)
other = torch.optim.AdamW(model.parameters())
x = torch.ones(2, 3)


def fail():
    try:
        torch.ones(3, device="meta") + torch.ones(3)
    except RuntimeError:
        pass


"""
LOOPS = {
    "iterations": ("""
for k in range(5):
    loss = model(x).sum()
    loss.backward()
    optimizer.step()
    other.step()
    optimizer.zero_grad()
fail()
""", 4, 5, 5),
    "iterations with evaluation between": ("""
for k in range(4):
    model(x).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        model(x).sum().item()
    with torch.inference_mode():
        model(x).sum().item()
fail()
""", 3, 4, 4),
    "accumulated gradients": ("""
for k in range(6):
    model(x).sum().backward()
    if k % 3 == 2:
        optimizer.step()
        optimizer.zero_grad()
fail()
""", 5, 6, 2),
    "no backward": ("""
for k in range(5):
    model(x).sum()
with torch.no_grad():
    for k in range(5):
        model(x).sum()
fail()
""", 0, 1, 0),
    "checkpointed iterations": ("""
from torch.utils.checkpoint import checkpoint
for k in range(3):
    checkpoint(model, x.clone().requires_grad_(), use_reentrant=k == 1).sum().backward()
    optimizer.step()
fail()
""", 2, 3, 3),
    "two losses of one forward": ("""
for k in range(3):
    hidden = model[0](x)
    first, second = hidden.sum(), model[1](hidden).sum()
    first.backward(retain_graph=True)
    second.backward()
    optimizer.step()
fail()
""", 2, 3, 3),
}


@pytest.mark.parametrize("loop", LOOPS)
def test_steps_count_iterations(run_python, loop):
    body, step, steps, optimizer_steps = LOOPS[loop]
    result = run_python(STEPS + body)
    assert result.status == 0, result.stderr
    assert [finding["step"] for finding in result.raised()] == [step]
    run = result.report["run"]
    assert (run["steps"], run["optimizer_steps"]) == (steps, optimizer_steps)


PHASES = """\
import torch


def meet():
    torch.ones(3, device="meta") + torch.ones(3)


def attempt(body):
    try:
        body()
    except RuntimeError:
        pass


class Module(torch.nn.Module):
    def forward(self, x):
        torch.ones(3, device="meta") + x  # @forward


class MyOptimizer(torch.optim.SGD):
    def step(self):
        torch.ones(3, device="meta") + torch.ones(3)  # @optimizer


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 2

    def __getitem__(self, k):
        return torch.ones(3, device="meta") + torch.ones(3)  # @data


class Stateful(torch.nn.Module):
    def _load_from_state_dict(self, *arguments, **keywords):
        torch.ones(3, device="meta") + torch.ones(3)  # @checkpoint


leaf = torch.ones(3, requires_grad=True)


def hook(grad):
    return torch.ones(3, device="meta") + grad  # @backward


leaf.register_hook(hook)
attempt(lambda: Module()(torch.ones(3)))
attempt(lambda: leaf.sum().backward())
attempt(lambda: MyOptimizer([leaf]).step())
attempt(lambda: list(torch.utils.data.DataLoader(Data())))
attempt(lambda: Stateful().load_state_dict({}))
attempt(lambda: torch.ones(3, device="meta") + torch.ones(3))  # @other
"""


def test_findings_tell_the_phase_of_training(run_python):
    result = run_python(PHASES)
    marks = ["forward", "backward", "optimizer", "data", "checkpoint", "other"]
    assert [found_at(result, PHASES, mark)["phase"] for mark in marks] == marks
