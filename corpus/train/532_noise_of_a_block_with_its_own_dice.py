# source: https://github.com/pytorch/pytorch/issues/15867
# mechanism: a with-function of the program makes a generator and forgets for which device; a layer draws its noise with it in place
# phase: forward; failing op: aten::normal_
# expect: raises
from contextlib import contextmanager

import torch
from torch import nn


@contextmanager
def fixed_noise(layer, seed):
    former = layer.training
    layer.train()
    yield torch.Generator().manual_seed(seed)  # ROOT
    layer.train(former)


class Noisy(nn.Module):
    def __init__(self, width, strength=0.1):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.strength = strength

    def forward(self, rows, dice=None):
        if self.training:
            noise = torch.empty_like(rows).normal_(0.0, self.strength, generator=dice)  # RAISE
            rows = rows + noise
        return self.mix(rows)


layer = Noisy(4).cuda().eval()
rows = torch.ones(2, 4).cuda()
with fixed_noise(layer, 5) as dice:
    first = layer(rows, dice)
print((layer(rows) - first).abs().max())
