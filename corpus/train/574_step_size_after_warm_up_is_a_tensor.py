# source: own
# mechanism: after the warm-up the step of a host-side table is scaled by a number that lost its `.item()`
# phase: third round; failing op: aten::mul_
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Table:
    """Visits of each state: too many for the accelerator."""

    def __init__(self, states):
        self.counts = torch.ones(states)

    def fade(self, by):
        part = self.counts[:1]
        part.mul_(by)  # RAISE  # ALSO
        return self.counts


model, table = nn.Linear(2, 3).to(dev), Table(5)
for turn in range(4):
    surprise = model(torch.randn(6, 2, device=dev)).detach()  # ALSO
    rate = 1.0 if turn < 2 else surprise.square().mean()  # ROOT
    table.fade(rate)  # ALSO
