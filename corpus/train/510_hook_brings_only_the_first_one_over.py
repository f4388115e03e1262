# source: https://github.com/unslothai/unsloth/pull/8516
# mechanism: a hook brings the first argument to the layer's GPU, and hands the mask beside it on as it came
# phase: forward of the second layer; failing op: aten::masked_fill.Scalar
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)

    def forward(self, rows, hidden):
        scores = self.query(rows) @ rows.mT
        scores = scores.masked_fill(hidden, -1e4)  # RAISE  # ALSO
        return scores.softmax(-1) @ rows


def follow(layer, inputs):
    device = next(layer.parameters()).device
    first, *others = inputs  # ALSO
    return (first.to(device), *others)  # ROOT


class Tower(nn.Module):
    def __init__(self, width, devices):
        super().__init__()
        self.layers = nn.ModuleList(Attention(width).to(device) for device in devices)
        for layer in self.layers:
            layer.register_forward_pre_hook(follow)

    def forward(self, rows):
        length = rows.shape[1]
        hidden = torch.ones(length, length, dtype=torch.bool, device=rows.device).triu(1)
        for layer in self.layers:
            rows = layer(rows, hidden)
        return rows


tower = Tower(4, ["cuda:0", "cuda:1"])
print(tower(torch.randn(2, 3, 4, device="cuda:0")).device)
