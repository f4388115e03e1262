import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.proj = nn.Linear(16, 4)
        self.scale = torch.ones(4)

    def forward(self, x):
        return self.proj(x) * self.scale


model = Head().to("cuda")
x = torch.randn(8, 16, device="cuda")
print(model(x).sum())
