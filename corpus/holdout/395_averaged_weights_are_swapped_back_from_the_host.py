# source: Lightning-AI/pytorch-lightning#10914
# mechanism: weights wait on the host while averaged ones are used, and are put back as they are
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Averaging:
    def __init__(self, model):
        self.average = {name: p.detach().clone() for name, p in model.named_parameters()}
        self.backup = {}

    def begin(self, model):
        for name, p in model.named_parameters():
            self.backup[name] = p.detach().cpu()
            p.data.copy_(self.average[name])

    def end(self, model):
        for name, p in model.named_parameters():
            p.data = self.backup.pop(name)  # ROOT


def fit(model, averaging, batches):
    for x in batches:
        model(x).sum().backward()  # RAISE
        averaging.begin(model)
        with torch.no_grad():
            model(x)
        averaging.end(model)


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).to("cuda")
fit(model, Averaging(model), torch.rand(3, 5, 4, device="cuda"))
