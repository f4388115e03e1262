# source: lonePatient/lookahead_pytorch#5 (a frozen part of the model stays on the CPU)
# mechanism: a loop moves the parameters that train, one by one, to spare memory; frozen ones are used there, too
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, size, rank=2):
        super().__init__()
        self.base = nn.Linear(size, size).requires_grad_(False)
        self.down, self.up = nn.Linear(size, rank, bias=False), nn.Linear(rank, size, bias=False)

    def forward(self, x):
        low = self.up(self.down(x))
        return self.base(x) + low  # RAISE


def to_device(model, device):
    for name, weight in model.named_parameters():
        if weight.requires_grad:  # ROOT
            weight.data = weight.data.to(device)


model = nn.Sequential(Adapted(4), nn.ReLU(), Adapted(4))
to_device(model, "cuda:0")
model(torch.randn(2, 4, device="cuda:0"))
