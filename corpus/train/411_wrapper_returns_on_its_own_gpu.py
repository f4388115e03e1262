# source: none; a block that is too large for its GPU is wrapped
# mechanism: a wrapper takes its input to the GPU of what it wraps, and returns the result there; the sum is elsewhere
# phase: forward; aten::add.Tensor
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class OnItsGpu(nn.Module):
    def __init__(self, inner, device):
        super().__init__()
        self.inner = inner.to(device)
        self.device = device

    def forward(self, x):
        x = x.to(self.device)
        return self.inner(x)  # ROOT


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.feed = nn.Sequential(nn.Linear(size, 8), nn.GELU(), nn.Linear(8, size))

    def forward(self, x):
        return x + self.feed(self.norm(x))  # RAISE  # ALSO


blocks = nn.Sequential(Block(4), Block(4)).to("cuda:0")
blocks[1].feed = OnItsGpu(blocks[1].feed, "cuda:1")
for _ in range(2):
    blocks(torch.rand(3, 4, device="cuda:0"))
