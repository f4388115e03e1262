# source: pytorch/pytorch#17484
# mechanism: `.to()` of a Parameter gives a plain tensor, which the module does not know and does not take along to another GPU
# phase: forward; aten::mul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.body = nn.Linear(width, width, device=device)
        self.scale = nn.Parameter(torch.full((width,), 0.1)).to(device)  # ROOT

    def forward(self, x):
        return self.body(x) * self.scale  # RAISE


model = nn.Sequential(Scaled(4, "cuda:0"), nn.ReLU(), Scaled(4, "cuda:0"))
model(torch.rand(3, 4, device="cuda:0")).sum().backward()
model.to("cuda:1")
model(torch.rand(3, 4, device="cuda:1"))
