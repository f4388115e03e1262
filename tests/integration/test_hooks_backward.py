"""Failures inside a backward, and the counting of training steps."""

import pytest
from hooks_programs import HELPERS, found_at, line_of

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


def test_gradient_returned_on_another_device_is_named_with_the_line_that_made_it(run_python):
    """PythonOT/POT#679: a function that computes on the host returned its result to the device, but not its gradient."""
    result = run_python("""
        import torch

        class HostCumsum(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, scale):
                return (x.detach().cpu().cumsum(0) * scale.cpu()).to(x.device)

            @staticmethod
            def backward(ctx, grad):
                host = grad.cpu().flip(0).cumsum(0).flip(0)  # HERE
                return None, host

        x = torch.ones(3, device="cuda")
        scale = torch.ones(3, device="cuda", requires_grad=True)
        HostCumsum.apply(x, scale).sum().backward()
    """, sim=1)
    [finding] = result.raised()
    [gradient, wanted] = finding["operands"]
    assert (gradient["arg"], gradient["device"], gradient["odd"]) == ("gradients[1]", "cpu", True)
    assert (wanted["arg"], wanted["device"], wanted["odd"]) == ("inputs[1]", "cuda:0", False)
    made = next(step for step in gradient["lineage"] if step["how"] == "moved")
    assert made["source"].endswith("# HERE")
    assert finding["root_cause"]["line"] == made["line"]
    assert finding["op"] == "autograd::HostCumsumBackward"


NESTED = """\
import torch


""" + HELPERS + """

class Inner(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flat, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, outer):
        (x,) = ctx.saved_tensors
        with torch.enable_grad():
            begin = x.detach().requires_grad_()
            (inner,) = torch.autograd.grad((begin * 3).sum(), begin)
        return inner, inner


leaf = torch.ones(3, requires_grad=True)  # @leaf
made = leaf * 2  # @made
of_leaf = Inner.apply(leaf, gpu().requires_grad_())
attempt(of_leaf.sum().backward)  # @backward
of_made = Inner.apply(made, gpu().requires_grad_())
attempt(of_made.sum().backward)  # @backward
"""


def test_a_backward_inside_of_a_backward_leaves_the_line_of_the_outer_one(run_python):
    result = run_python(NESTED, sim=1)
    assert result.status == 0, result.stderr
    lines = NESTED.splitlines()
    places = {finding["where"]["line"] for finding in result.raised()}
    assert places & {number for number, line in enumerate(lines, 1) if "attempt(" in line or "body()" in line}
    assert all("autograd.grad" not in lines[place - 1] for place in places)


def test_the_input_of_a_refused_gradient_has_the_history_of_the_forward(run_python):
    result = run_python(NESTED, sim=1)
    lines = NESTED.splitlines()
    told = set()
    for finding in result.raised():
        for operand in finding["operands"]:
            if operand["arg"].startswith("inputs["):
                told |= {lines[step["line"] - 1].split("# @")[-1] for step in operand["lineage"][:1]}
    assert told == {"leaf", "made"}
