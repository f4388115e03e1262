"""accelerate spreads a residual block over two GPUs by a map of devices."""
import torch
from accelerate import dispatch_model
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.outer = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        hidden = self.inner(x)
        return hidden + self.outer(hidden)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block, self.head = Block(), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.block(x))


net = dispatch_model(Net(), {"block.inner": 0, "block.outer": 1, "head": 1})  # ROOT
net(torch.randn(2, 4))
