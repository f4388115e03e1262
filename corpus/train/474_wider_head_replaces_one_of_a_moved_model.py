# source: none; the shape of scripts that give a model on a GPU more classes
# mechanism: a wider layer is made on the host, filled from the old one and put in its place, in a model that has been moved before
# phase: forward after the change; aten::linear
# expect: raises
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Sorter(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        self.vote = nn.Linear(5, classes, bias=False)

    def forward(self, rows):
        return self.vote(rows * self.scale)  # RAISE


def widen(sorter, classes):
    former = sorter.vote
    wider = nn.Linear(former.in_features, classes, bias=False)  # ROOT
    with torch.no_grad():
        wider.weight[: former.out_features].copy_(former.weight)
    sorter.vote = wider  # ALSO


sorter = Sorter(2).to(device)
rows = torch.randn(4, 5).to(device)
print(sorter(rows).shape)
widen(sorter, 3)
print(sorter(rows).shape)
