# source: sgl-project/sglang PR#27440, schen149/sub-sentence-encoder#1 (as they are after the change)
# mechanism: none
# phase: inference
# expect: clean
import torch
from torch import nn


class Journal:
    def __init__(self, days):
        self.marks = torch.zeros(days)
        self.order = torch.arange(days)

    def to(self, device):
        self.marks = self.marks.to(device)
        self.order = self.order.to(device)
        return self

    def add(self, values):
        self.marks[self.order[: len(values)]] += values


class Weather(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Linear(width, width)
        self.usual = torch.linspace(0.0, 1.0, width)

    def forward(self, x, bounds):
        x = self.net(x) - self.usual.to(x.device)
        bounds = bounds.tolist()
        parts = []
        for start, end in zip(bounds[:-1], bounds[1:]):
            parts.append(x[start:end].mean())
        return torch.stack(parts)


weather = Weather(4).to("cuda:0").eval()
journal = Journal(7).to("cuda:0")
bounds = torch.tensor([0, 3, 5, 9], device="cuda:0")
with torch.no_grad():
    values = weather(torch.randn(9, 4, device="cuda:0"), bounds)
    journal.add(values)
print(journal.marks.sum().item())
