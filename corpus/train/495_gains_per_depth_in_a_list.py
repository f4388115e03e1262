# source: https://github.com/pytorch/pytorch/issues/4412
# mechanism: parameters are put into a plain list by the constructor, so the module does not move them with its layers
# phase: forward; failing op: aten::mul.Tensor
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F

device = torch.device("cuda", 0)


class Ladder(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList()
        self.gains = []  # ROOT
        for level in range(depth):
            self.layers.append(nn.Linear(width, width))
            self.gains.append(nn.Parameter(torch.full((width,), 0.1 / (level + 1))))  # ALSO

    def forward(self, rows):
        for layer, gain in zip(self.layers, self.gains):
            rows = rows + gain * F.gelu(layer(rows))  # RAISE
        return rows


ladder = Ladder(6, 3)
ladder.to(device)
optimizer = torch.optim.SGD(ladder.parameters(), lr=0.1)
loss = ladder(torch.randn(4, 6, device=device)).square().mean()
loss.backward()
optimizer.step()
