# source: https://github.com/davda54/sam/issues/75
# mechanism: a norm over all gradients is made by stacking one norm per parameter, and the parameters are on two GPUs
# phase: ascent after backward; failing op: aten::stack
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Ascent:
    def __init__(self, model, radius):
        self.parameters = [weight for weight in model.parameters() if weight.requires_grad]
        self.radius = radius

    def length(self):
        total = torch.stack([one.grad.norm() for one in self.parameters if one.grad is not None])  # ROOT # RAISE
        return total.norm()

    @torch.no_grad()
    def climb(self):
        scale = self.radius / (self.length() + 1e-12)
        for weight in self.parameters:
            weight.add_(weight.grad * scale.to(weight.device))


class Halves(nn.Module):
    def __init__(self):
        super().__init__()
        self.lower = nn.Sequential(nn.Linear(6, 10), nn.ReLU()).to("cuda:0")
        self.upper = nn.Linear(10, 2).to("cuda:1")

    def forward(self, rows):
        return self.upper(self.lower(rows.to("cuda:0")).to("cuda:1"))


model = Halves()
ascent = Ascent(model, 0.05)
model(torch.randn(4, 6)).square().mean().backward()
ascent.climb()
