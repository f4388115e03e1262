"""The history of what torch.func wraps: the value in the wrapper has it, and what keeps that is found."""

import pytest
from hooks_programs import found_at, line_of, odd_operand

TRANSFORMS = """\
import torch
from torch.func import functional_call, grad, jvp, stack_module_state, vmap


def attempt(body):
    try:
        body()
    except RuntimeError:
        pass


class Ensemble(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))
        members = [torch.nn.Linear(4, 2) for _ in range(size)]
        self.weights, self.buffers_ = stack_module_state(members)  # @stacked_made
        self.template = [members[0]]

    def forward(self, x):
        def one(weights, buffers):
            return functional_call(self.template[0], (weights, buffers), (x,))  # @stacked
        return vmap(one)(self.weights, self.buffers_)


def scaled(row, table):
    wide = row * 2  # @computed_made
    return wide + table  # @computed


def loss(weight, x):
    hidden = weight.tanh()  # @graded_made
    return (hidden * x).sum()  # @graded


def tangent(x):
    shifted = x + 1  # @pushed_made
    return shifted * torch.ones(3, device="cuda")  # @pushed


def nested(row, table):
    def inner(one):
        wide = one.exp()  # @nested_made
        return (wide * table).sum()  # @nested
    return grad(inner)(row)


def cloned(row, table):
    kept = row.clone()  # @cloned_made
    return kept + table  # @cloned


def moved(row, table):
    away = row.cuda()  # @moved_made
    return away + table  # @moved


rows = torch.ones(5, 3)
table = torch.ones(3, device="cuda")
attempt(lambda: Ensemble(3).to("cuda")(torch.ones(2, 4, device="cuda")))
attempt(lambda: vmap(scaled, in_dims=(0, None))(rows, table))
attempt(lambda: grad(loss)(torch.ones(3), table))
attempt(lambda: jvp(tangent, (torch.ones(3),), (torch.ones(3),)))
attempt(lambda: vmap(nested, in_dims=(0, None))(rows, table))
attempt(lambda: vmap(cloned, in_dims=(0, None))(rows, table))
attempt(lambda: vmap(moved, in_dims=(0, None))(rows, torch.ones(3)))
"""


@pytest.fixture(scope="module")
def transforms(devsan, python, tmp_path_factory):
    from harness import Runner
    result = Runner(devsan, python, tmp_path_factory.mktemp("transforms"))(TRANSFORMS, sim=1)
    assert result.status == 0, result.stderr
    return result


@pytest.mark.parametrize("mark", ["computed", "graded", "pushed", "nested", "cloned"])
def test_a_value_inside_of_a_transform_has_its_history(transforms, mark):
    lineage = odd_operand(found_at(transforms, TRANSFORMS, mark))["lineage"]
    assert lineage and lineage[0]["line"] == line_of(TRANSFORMS, mark + "_made"), lineage
    assert lineage[-1]["how"] == "created", lineage


def test_a_move_inside_of_a_transform_is_a_step_of_the_history(transforms):
    operands = found_at(transforms, TRANSFORMS, "moved")["operands"]
    steps = [(step["line"], step["how"], step["device"]) for operand in operands for step in operand["lineage"]]
    assert (line_of(TRANSFORMS, "moved_made"), "moved", "cuda:0") in steps, steps


def test_stacked_weights_that_a_module_keeps_lead_to_the_line_that_stores_them(transforms):
    finding = found_at(transforms, TRANSFORMS, "stacked")
    named = [finding["root_cause"], *finding["alternatives"]]
    assert line_of(TRANSFORMS, "stacked_made") in [one["line"] for one in named], named
