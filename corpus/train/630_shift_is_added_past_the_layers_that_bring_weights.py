# source: https://pytorch.org/docs/stable/generated/torch.nn.functional.linear.html
# expect: raises
# The weights of a large generator stay on the host; a helper brings over what a layer needs. A learnt shift, picked by a tensor of
# classes, is taken without it.
import torch
from torch import nn
from torch.nn import functional as F


def brought(weight, like):
    return weight.to(device=like.device, dtype=like.dtype)


class Lean(nn.Module):
    def __init__(self, inner, outer):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(outer, inner) * 0.1)

    def forward(self, x):
        return F.linear(x, brought(self.weight, x))


class Generator(nn.Module):
    def __init__(self, width, classes):
        super().__init__()
        self.first, self.second = Lean(width, width), Lean(width, width)
        self.shifts = nn.Parameter(torch.zeros(classes, width))

    def forward(self, noise, classes):
        x = self.second(self.first(noise).relu())
        shift = self.shifts[classes]  # ROOT
        return x + shift  # RAISE  # ALSO


generator = Generator(6, 3)
noise = torch.randn(2, 6, device="cuda")
print(generator(noise, torch.tensor([0, 2])).sum())
