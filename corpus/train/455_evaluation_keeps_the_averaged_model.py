# source: lucidrains/DALLE2-pytorch#87
# mechanism: an evaluation takes the averaged model to a GPU that is free and leaves it there; its next update fails
# phase: training; aten::lerp_
# expect: raises
# needs: 2 GPUs
import copy

import torch
from torch import nn


class Averaged:
    def __init__(self, model, decay):
        self.model = copy.deepcopy(model).requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, model):
        for slow, fast in zip(self.model.parameters(), model.parameters()):
            slow.lerp_(fast, 1 - self.decay)  # RAISE


class Evaluator:
    """Scores on a GPU of its own, so that the training does not run out of memory."""

    def __init__(self, held_out, device):
        self.held_out = [(x.to(device), y.to(device)) for x, y in held_out]
        self.device = device
        self.best = float("inf")

    @torch.no_grad()
    def score(self, network):
        network = network.to(self.device).eval()  # ROOT
        errors = [nn.functional.l1_loss(network(x), y) for x, y in self.held_out]
        score = torch.stack(errors).mean().item()
        self.best = min(self.best, score)
        return score


def sample(count):
    x = torch.rand(count, 3)
    return x, (x * x.roll(1, dims=1)).sum(1, keepdim=True)


def train(steps, every):
    model = nn.Sequential(nn.Linear(3, 20), nn.Softplus(), nn.Linear(20, 1)).to("cuda:0")
    averaged, evaluator = Averaged(model, decay=0.9), Evaluator([sample(16) for _ in range(2)], "cuda:1")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(1, steps + 1):
        x, y = (part.to("cuda:0") for part in sample(32))
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        averaged.update(model)
        if step % every == 0:
            print(step, evaluator.score(averaged.model), evaluator.best)  # ALSO


train(steps=6, every=2)
