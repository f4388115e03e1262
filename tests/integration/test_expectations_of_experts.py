"""Experts of one layer that are not where they, or the group that they are divided among, say; and spreads that are
meant."""

import pytest

# Experts that are told where they belong. {keep} is what an expert keeps of it, {spread} where they go
# in the end.
TOLD = """
    import torch
    from torch import nn

    class Expert(nn.Module):
        def __init__(self, device):
            super().__init__()
            {keep}
            self.up, self.down = nn.Linear(4, 8), nn.Linear(8, 4)

        def forward(self, x):
            here = self.up.weight.device
            return self.down(torch.relu(self.up(x.to(here)))).to(x.device)

    class Mixture(nn.Module):
        def __init__(self, told):
            super().__init__()
            self.gate = nn.Linear(4, 4).to("cuda:0")
            self.experts = nn.ModuleList([Expert(device) for device in told])

        def forward(self, x):
            return sum(expert(x) for expert in self.experts) * self.gate(x).mean()

    model = Mixture({told})
    for expert, device in zip(model.experts, {spread}):
        expert.to(device)
    for step in range(2):
        model(torch.ones(2, 4, device="cuda:0")).sum().backward()
"""
HALVES = ["cuda:0", "cuda:0", "cuda:1", "cuda:1"]
ASTRAY = ["cuda:0", "cuda:0", "cuda:0", "cuda:1"]
DEVICE, TEXT = "self.device = torch.device(device)", "self.place = device"


def told(keep=DEVICE, told=HALVES, spread=HALVES):
    return TOLD.format(keep=keep, told=told, spread=spread)


# A layer as DeepSpeed's MoE has it: this rank's experts of a group of two ranks.
GROUPED = """
    import torch
    from torch import nn

    class Experts(nn.Module):
        def __init__(self, count):
            super().__init__()
            self.deepspeed_experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(count)])
            self.num_local_experts = count

    class MoE(nn.Module):
        def __init__(self, count, size):
            super().__init__()
            self.ep_size, self.num_local_experts = size, count
            self.gate = nn.Linear(4, 2)
            self.experts = Experts(count)

        def forward(self, x):
            there = self.experts.deepspeed_experts
            answers = sum(expert(x.to(expert.weight.device)).to(x.device) for expert in there)
            gate = self.gate(x.to(self.gate.weight.device)).mean()
            return answers * gate.to(x.device)

    model = nn.Sequential(MoE({count}, {size})).to("cuda:1")
    {line}
    for step in range(2):
        model(torch.ones(2, 4, device="cuda:1")).sum().backward()
"""


def grouped(line, count=2, size=2):
    return GROUPED.format(line=line, count=count, size=size)


def misplaced(run):
    assert run.status == 0, run.stderr
    return [f for f in run.findings if f["kind"] == "wrong-placement"]


@pytest.mark.parametrize("keep", [DEVICE, TEXT], ids=["device", "text"])
def test_an_expert_that_is_not_on_the_gpu_that_it_names(run_python, keep):
    [finding] = misplaced(run_python(told(keep, spread=ASTRAY), sim=2))
    expectation = finding["expectation"]
    assert expectation["rule"] == "expert-where-its-group-is"
    assert (expectation["expected"], expectation["found"]) == ("cuda:1", "cuda:0")
    assert (expectation["names"][0], expectation["tensors"]) == ("model.experts.2.up.weight", 4)
    assert finding["where"]["source"].strip() == "expert.to(device)"


@pytest.mark.parametrize("count", [2, 4])
def test_an_expert_that_is_not_on_the_gpu_of_its_rank(run_python, count):
    line = 'model[0].experts.deepspeed_experts[1].to("cuda:0")'
    [finding] = misplaced(run_python(grouped(line, count), sim=2))
    expectation = finding["expectation"]
    assert expectation["rule"] == "expert-where-its-group-is"
    assert (expectation["expected"], expectation["found"]) == ("cuda:1", "cuda:0")
    assert expectation["names"] == [f"model.0.experts.deepspeed_experts.1.{leaf}" for leaf in ("weight", "bias")]
    assert finding["root_cause"]["source"].strip() == line


@pytest.mark.parametrize("program", [
    told(),
    told(spread=["cuda:1", "cuda:1", "cuda:0", "cuda:0"]),  # none is where it says: the attributes mean something else
    told(told=["cuda:0"] * 4, spread=["cuda:0", "cuda:0", "cuda:0", "cuda:1"]),  # all were told the same, and one moved
    told(spread=["cuda:0", "cuda:0", "cpu", "cuda:1"]),  # one is offloaded
    told(told=HALVES[1:3], spread=["cuda:0"] * 2),  # two do not tell which of them is right
    told("self.id = int(device[-1])", spread=ASTRAY),  # a number may be that of the layer
    told("pass", spread=ASTRAY),  # an uneven spread
    grouped("pass"),
    grouped("pass", count=4),
    grouped('model[0].experts.deepspeed_experts[1].to("cuda:0")', size=1),  # all experts are this process's, to spread
    grouped('model[0].experts.deepspeed_experts[1].cpu()'),  # offloaded
    grouped('model[0].gate.to("cuda:0")'),  # a gate elsewhere, of which nothing is said
    # as many here as there, and a gate on the host
    grouped('for k in range(2): model[0].experts.deepspeed_experts[k].to("cuda:0"); model[0].gate.cpu()', count=4),
], ids=["spread", "inverted", "same", "offloaded", "pair", "number", "uneven", "group", "four", "alone", "host", "gate",
        "halves"])
def test_spreads_that_are_meant_are_no_finding(run_python, program):
    assert misplaced(run_python(program, sim=2)) == []


def test_the_expectation_of_experts_is_switched_off_by_its_name(run_python):
    off = "expect_not=expert-where-its-group-is"
    assert misplaced(run_python(told(spread=ASTRAY), sim=2, preload=True, options=[off])) == []
