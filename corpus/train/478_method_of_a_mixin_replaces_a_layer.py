# source: none; the shape of methods that give a model another number of outputs
# mechanism: a method from a base class that is no module makes a layer and puts it into the model, which has been moved
# phase: forward after the change; aten::linear
# expect: raises
import torch
from torch import nn


class Growing:
    part = "scores"

    def grow(self, labels):
        before = getattr(self, self.part)
        wider = nn.Linear(before.in_features, labels)  # ROOT
        with torch.no_grad():
            wider.bias[: before.out_features] = before.bias.to(wider.bias.device)
        setattr(self, self.part, wider)  # ALSO


class Tagger(Growing, nn.Module):
    def __init__(self, width, labels):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, width), nn.Tanh())
        self.scores = nn.Linear(width, labels)

    def forward(self, rows):
        return self.scores(self.body(rows))  # RAISE


device = torch.device("cuda")
tagger = Tagger(8, 3).to(device)
for labels in (3, 5):
    if labels != tagger.scores.out_features:
        tagger.grow(labels)
    print(tagger(torch.randn(2, 5, device=device)).shape)
