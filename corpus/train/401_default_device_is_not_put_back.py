# source: pytorch/pytorch#138429
# mechanism: a block sets the default device to the CPU, and leaves none behind instead of the one that there was
# phase: forward; aten::linear
# expect: raises
import contextlib

import torch
from torch import nn

torch.set_default_device("cuda:0")


@contextlib.contextmanager
def on_host():
    torch.set_default_device("cpu")
    try:
        yield
    finally:
        torch.set_default_device(None)  # ROOT


class Reference:
    def __init__(self, points):
        self.grid = torch.linspace(0, 1, points)


def residual(net, points):
    x = torch.rand(points, 1)
    return net(x).pow(2).mean()  # RAISE


net = nn.Linear(1, 1)
with on_host():
    reference = Reference(16)
residual(net, 8).backward()
