# source: own
# mechanism: blocks on two GPUs get their inputs brought over by a hook that is bound to a device with functools.partial; the time is given by name
# phase: forward of the second block; failing op: aten::mul
# expect: raises
# needs: 2 GPUs
import functools

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.mix = nn.Linear(dim, dim)

    def shifted(self, x, time):
        return self.mix(x) * time[:, None]  # RAISE  # ALSO

    def forward(self, x, time):
        return x + self.shifted(x, time).tanh()


def bring(device, block, inputs):  # ALSO
    return tuple(one.to(device) for one in inputs)  # ALSO


def place(blocks, devices):
    for block, device in zip(blocks, devices):
        block.to(device)
        block.register_forward_pre_hook(functools.partial(bring, device))  # ROOT
    return blocks


blocks = place(nn.ModuleList(Block(4) for _ in range(2)), ["cuda:0", "cuda:1"])
x, time = torch.randn(3, 4, device="cuda:0"), torch.rand(3, device="cuda:0")
for block in blocks:
    x = block(x, time=time)  # ALSO
