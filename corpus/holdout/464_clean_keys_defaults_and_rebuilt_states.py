# source: none; what caches, states that move themselves and samplers do when they do it right
# mechanism: keys with type and index, attributes made anew, states that hand on what has no device
# phase: forward
# expect: clean
# needs: 2 GPUs
import torch
from torch import nn

TABLES = {}


def table(size, like):
    key = f"{size}_{like.device.type}_{like.device.index}"
    if key not in TABLES:
        TABLES[key] = torch.arange(size, device=like.device).float()
    return TABLES[key]


class State:
    def __init__(self, scale, order, size):
        self.scale = scale
        self.order = order
        self.size = size

    def to(self, device):
        scale = self.scale.to(device)
        order = self.order
        size = self.size
        return State(scale, order, size)

    def apply(self, rows):
        return rows[self.order] * self.scale


class Factors(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.left = nn.Parameter(torch.randn(width, 2))
        self.full = self.left.data @ self.left.data.T
        self.shift = None

    def forward(self, x, device=None):
        self.full = self.left @ self.left.T
        if self.shift is None or self.shift.device != x.device:
            self.shift = table(x.shape[-1], x)
        return x @ self.full + self.shift


def draw(count, device):
    move = lambda tensor: tensor[:count].to(device)
    lengths = torch.arange(1, count + 1)
    return {"x": move(torch.rand(9, 4)), "lengths": lengths}


model = Factors(4)
model(torch.rand(3, 4))
for number in range(2):
    device = torch.device("cuda", number)
    model = model.to(device)
    batch = draw(3, device)
    out = model(batch["x"])
    state = State(torch.tensor(2.0), torch.tensor([2, 0, 1]), 3).to(device)
    mean = state.apply(out).sum(1).cpu() / batch["lengths"]
    print(number, mean.shape)
