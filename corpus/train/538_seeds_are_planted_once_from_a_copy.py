# source: a robustness check that predicts for a moved batch, and later for the batch itself
# mechanism: a garden gets a copy of the seeds for one season; for the next the seeds themselves, which a sum is made of before they are missed
# phase: evaluation; failing op: aten::addmm
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Garden(nn.Module):
    def __init__(self):
        super().__init__()
        self.soil = nn.Linear(3, 3)

    def forward(self, seeds):
        return self.soil(seeds).relu()  # RAISE


class Farm:
    def __init__(self, garden):
        self.garden = garden

    def grow(self, days, *, seeds, rain=0.0):
        heights = 0
        for _ in range(days):
            heights = heights + self.garden(seeds - rain).sum(-1)
        return heights

    def compare(self, seeds):
        dry = self.grow(2, seeds=seeds.to(dev))  # ALSO
        wet = self.grow(2, seeds=seeds, rain=1.0)  # ROOT
        return dry - wet


with torch.no_grad():
    Farm(Garden().to(dev)).compare(torch.rand(4, 3))
