# source: https://docs.python.org/3/library/copy.html
# expect: raises
# needs: 2 GPUs
# Each stage of a filter is wrapped for logging; a copy of the filter on another GPU still runs the wrapped stages of the first one.
import copy
import functools

import torch
from torch import nn

levels = []


class Cascade(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(depth))
        self.gain = nn.Parameter(torch.ones(width, 1))

    def forward(self, wave):
        for stage in self.stages:
            wave = stage(wave)
        return wave * self.gain  # RAISE


def watch(stage):
    plain = stage.forward

    @functools.wraps(plain)
    def watched(wave):
        out = plain(wave.to(stage.weight.device))
        levels.append(float(out.detach().abs().max()))
        return out

    setattr(stage, "forward", watched)  # ROOT


left = Cascade(3, 2)
for stage in left.stages:
    watch(stage)
left.to("cuda:0")
right = copy.deepcopy(left).to("cuda:1")
wave = torch.randn(1, 3, 16)
print(left(wave).shape)
print(right(wave).shape)
