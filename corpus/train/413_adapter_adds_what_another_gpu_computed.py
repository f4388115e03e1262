# source: none; an adapter beside a layer, on a GPU that has room
# mechanism: what an adapter computes on a GPU of its own is added to the output of the layer, which is on another
# phase: forward; aten::add.Tensor
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Adapter(nn.Module):
    def __init__(self, size, rank, device):
        super().__init__()
        self.down = nn.Linear(size, rank, bias=False)
        self.up = nn.Linear(rank, size, bias=False)
        self.home = device
        self.to(device)

    def forward(self, x):
        change = self.down(x.to(self.home))
        change = self.up(change)  # ALSO
        return change  # ROOT


class Adapted(nn.Module):
    def __init__(self, base, adapter):
        super().__init__()
        self.base, self.adapter = base, adapter

    def forward(self, x):
        before = self.base(x)
        change = self.adapter(x)  # ALSO
        return before + 0.1 * change  # RAISE  # ALSO


layer = Adapted(nn.Linear(4, 4).to("cuda:0"), Adapter(4, 2, "cuda:1"))
for _ in range(3):
    layer(torch.rand(5, 4, device="cuda:0"))
