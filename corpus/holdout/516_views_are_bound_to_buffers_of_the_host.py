# source: https://github.com/pytorch/pytorch/issues/43815
# mechanism: the constructor binds a buffer in a partial, which keeps it as it was before the module was moved
# phase: forward; failing op: aten::matmul
# expect: raises
import functools

import torch
from torch import nn


def spread(rows, basis, power):
    return (rows @ basis).abs() ** power  # RAISE


class Filter(nn.Module):
    def __init__(self, length, bands):
        super().__init__()
        steps = torch.arange(length).float()
        self.register_buffer("basis", torch.cos(steps[:, None] * torch.arange(bands) / length))
        self.spread = functools.partial(spread, basis=self.basis, power=2.0)  # ROOT
        self.vote = nn.Linear(bands, 2)

    def forward(self, rows):
        return self.vote(self.spread(rows).log1p())  # ALSO


device = torch.device("cuda:0")
net = nn.Sequential(nn.LayerNorm(8), Filter(8, 3))
net.to(device)
print(net(torch.randn(4, 8, device=device)).shape)
