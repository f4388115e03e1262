# source: https://github.com/pytorch/pytorch/issues/140602
# mechanism: a block makes the GPU the default, which from_numpy does not follow
# phase: forward; failing op: aten::mm
# expect: raises
import numpy as np
import torch
from torch import nn


class Spectrum(nn.Module):
    def __init__(self, bank):
        super().__init__()
        self.bank = bank
        self.shift = nn.Parameter(torch.zeros(bank.shape[1]))

    def forward(self, power):
        return torch.log1p(power @ self.bank) + self.shift  # RAISE


def triangles(bins, bands):
    centres = np.linspace(0, bins - 1, bands)
    away = np.abs(np.arange(bins)[:, None] - centres[None])
    return np.maximum(0, 1 - away / (bins / bands)).astype(np.float32)


def build(bins=16, bands=5):
    with torch.device("cuda"):
        bank = torch.from_numpy(triangles(bins, bands))  # ROOT
        front = Spectrum(bank)  # ALSO
        head = nn.Linear(bands, 2)
        power = torch.rand(3, bins)
    return front, head, power


front, head, power = build()
print(head(front(power)).shape)
