# source: none; what the causes about hooks, tables made anew and models on several GPUs must not speak of
# mechanism: hooks that move both kinds of arguments; a table that follows its module; targets that the model brings over
# phase: training
# expect: clean
# needs: 2 GPUs
import torch
from torch import nn
from torch.nn import functional as F

near, far = torch.device("cuda:0"), torch.device("cuda:1")


class Scale(nn.Module):
    def __init__(self, length):
        super().__init__()
        self.register_buffer("table", torch.empty(0))
        self.extend(length)

    def extend(self, length):
        device = self.table.device
        steps = torch.arange(length, device=device)
        self.table = torch.exp(-steps / length)

    def forward(self, rows, *, shift):
        if rows.shape[-1] > len(self.table):
            self.extend(rows.shape[-1])
        return rows * self.table[: rows.shape[-1]] + shift


def align(place):
    def bring(_, inputs, named):
        return tuple(one.to(place) for one in inputs), {name: one.to(place) for name, one in named.items()}

    return bring


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ModuleList(Scale(4).to(place) for place in (near, far))
        for scale, place in zip(self.scales, (near, far)):
            scale.register_forward_pre_hook(align(place), with_kwargs=True)
        self.vote = nn.Linear(6, 3).to(far)

    def forward(self, rows, labels):
        shift = torch.ones((), device=near)
        for scale in self.scales:
            rows = scale(rows, shift=shift)
        logits = self.vote(rows)
        return F.cross_entropy(logits, labels.to(logits.device))


model = Spread()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.randn(5, 6, device=near), torch.randint(0, 3, (5,), device=near)).backward()
    optimizer.step()
