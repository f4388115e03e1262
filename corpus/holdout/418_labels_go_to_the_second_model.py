# source: none; what 409 does, at the top of a file that goes on to use the name
# mechanism: a value is taken where nobody uses it, in a function whose variables have names that others use, too
# phase: forward; aten::nll_loss_nd
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Sharded(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 8).to("cuda:0")
        self.last = nn.Linear(8, 3).to("cuda:1")

    def forward(self, x):
        return self.last(torch.relu(self.first(x)).to("cuda:1"))


def loss_of(scores, wanted):
    chances = scores.log_softmax(-1)
    return nn.functional.nll_loss(chances, wanted)  # RAISE  # ALSO


def train(model, batches):
    for x, y in batches:
        x = x.to(model.first.weight.device)
        y = y.to(model.first.weight.device)  # ROOT
        loss = loss_of(model(x), y)
        loss.backward()


def counts(batches):
    found = torch.zeros(3)
    for _, y in batches:
        found += y.bincount(minlength=3)
    return found


batches = [(torch.rand(5, 4), torch.randint(3, (5,))) for _ in range(2)]
counts(batches)
train(Sharded(), batches)
