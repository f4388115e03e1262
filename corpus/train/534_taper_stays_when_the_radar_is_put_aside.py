# source: an audio model that is put aside between requests, with a window that is a plain attribute
# mechanism: a radar's range taper is a plain attribute; a helper puts the model aside on the CPU, and what is tried on it there is new
# phase: check on the host; failing op: aten::mul
# expect: raises
import contextlib

import torch
from torch import nn


class Sweep(nn.Module):
    def __init__(self, bins, where):
        super().__init__()
        self.bins = bins
        self.taper, self.gain = torch.linspace(1, 2, bins, device=where), 0.5  # ROOT

    def shaped(self, echo):
        return echo.view(-1, self.bins) * self.taper  # RAISE  # ALSO


class Radar(nn.Module):
    def __init__(self, bins, where):
        super().__init__()
        self.sweep = Sweep(bins, where)
        self.detect = nn.Linear(bins, 2, device=where)

    def forward(self, echo):
        return self.detect(self.sweep.shaped(echo) * self.sweep.gain)


class Aside(contextlib.AbstractContextManager):
    def __init__(self, net, home):
        self.net, self.home = net, home

    def __enter__(self):
        return self.net.cpu()

    def __exit__(self, *_):
        self.net.to(self.home)


home = torch.device("cuda", 0)
radar = Radar(6, where=home)
radar(torch.randn(12, device=home)).sum().backward()
with Aside(radar, home) as quiet:
    quiet(torch.zeros(12))
