# source: https://github.com/mlfoundations/open_flamingo/issues/91
# mechanism: each layer has a hook that brings its input to its GPU, and is asked by its forward method, which calls no hook
# phase: forward; failing op: aten::linear
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, rows):
        return rows + self.narrow(self.widen(rows).relu())  # RAISE


class Conditioned(nn.Module):
    def __init__(self, layer, width):
        super().__init__()
        self.layer = layer
        self.gate = nn.Parameter(torch.zeros(width))

    def forward(self, rows, picture):
        rows = rows + self.gate.tanh().to(rows.device) * picture.to(rows.device)
        return self.layer.forward(rows)  # ROOT


def to_own_device(layer, inputs):
    return tuple(one.to(layer.widen.weight.device) for one in inputs)


layers = [Layer(4).to(f"cuda:{number}") for number in range(2)]
for layer in layers:
    layer.register_forward_pre_hook(to_own_device)
tower = nn.ModuleList(Conditioned(layer, 4) for layer in layers)
rows, picture = torch.randn(3, 4, device="cuda:0"), torch.randn(3, 4, device="cuda:0")
for part in tower:
    rows = part(rows, picture)
print(rows.device)
