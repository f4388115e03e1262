# source: none; what models on two GPUs, norms over them, dice of the host and bound functions do when they do it right
# mechanism: every block of a list has its hook, norms are brought to one device, a partial looks its buffer up when it is called
# phase: training
# expect: clean
# needs: 2 GPUs
import functools

import torch
from torch import nn

places = [torch.device("cuda", 0), torch.device("cuda", 1)]


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.register_buffer("slope", torch.linspace(0, 1, width))
        self.bend = functools.partial(self.bent, power=2)

    def bent(self, rows, power):
        return rows + self.slope * rows.abs() ** power

    def forward(self, rows, weight):
        return self.bend(self.mix(rows)) * weight


def follow(block, inputs):
    return tuple(one.to(block.mix.weight.device) for one in inputs)


class Tower(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width).to(place) for place in places)
        for block in self.blocks:
            block.register_forward_pre_hook(follow)

    def forward(self, rows, weight):
        for block in self.blocks:
            rows = block(rows, weight)
        return rows


def length(weights):
    norms = [weight.grad.norm() for weight in weights]
    return torch.stack([norm.to(norms[0].device) for norm in norms]).norm()


tower = Tower(4)
optimizer = torch.optim.SGD(tower.parameters(), lr=0.1)
dice = torch.Generator().manual_seed(3)
data, wanted = torch.randn(10, 4), torch.randn(10, 4)
for _ in range(2):
    for chosen in torch.randperm(len(data), generator=dice).split(5):
        out = tower(data[chosen].to(places[0]), torch.ones(5, 1, device=places[0]))
        optimizer.zero_grad()
        (out - wanted[chosen].to(out.device)).square().mean().backward()
        scale = (1.0 / (length(list(tower.parameters())) + 1e-6)).clamp(max=1.0)
        for weight in tower.parameters():
            weight.grad.mul_(scale.to(weight.device))
        optimizer.step()
