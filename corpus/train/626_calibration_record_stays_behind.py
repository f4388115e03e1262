# source: https://pytorch.org/docs/stable/generated/torch.nn.Module.html
# expect: raises
# A named tuple of curves is read from a table and kept by a sensor model, within a plain object.
from typing import NamedTuple

import torch
from torch import nn


class Curve(NamedTuple):
    offset: torch.Tensor
    slope: torch.Tensor


class Lookup:
    def __init__(self, curves):
        self.curves = curves

    def apply(self, channel, signal):
        return (signal - self.curves[channel].offset) * self.curves[channel].slope  # RAISE  # ALSO


class Sensor(nn.Module):
    def __init__(self, lookup):
        super().__init__()
        self.mix = nn.Linear(5, 5)
        self.lookup = lookup  # ROOT

    def forward(self, signal):
        return self.lookup.apply("red", self.mix(signal))


table = {"red": Curve(torch.full((5,), 0.1), torch.full((5,), 2.0))}  # ALSO
sensor = Sensor(Lookup(table)).to("cuda")
print(sensor(torch.randn(2, 5, device="cuda")).sum())
