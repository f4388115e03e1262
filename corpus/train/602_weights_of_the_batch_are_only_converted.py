# source: skorch-dev/skorch#736 (sample weights are not brought to the device)
# mechanism: a method brings inputs and targets to its device; the optional weights of the samples are only converted
# phase: loss; aten::mul
# expect: raises
import torch
from torch import nn


class Regressor:
    def __init__(self, features, device):
        self.device = torch.device(device)
        self.net = nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, 1)).to(self.device)

    def prepared(self, inputs, targets, weights):
        inputs = inputs.to(self.device)
        targets = targets.to(self.device, torch.float32)
        weights = weights.clamp(min=0).float()  # ROOT
        return inputs, targets, weights / weights.sum()  # ALSO

    def loss(self, inputs, targets, weights):
        inputs, targets, weights = self.prepared(inputs, targets, weights)
        errors = (self.net(inputs).squeeze(1) - targets).pow(2)
        return (errors * weights).sum()  # RAISE


model = Regressor(4, "cuda:0")
model.loss(torch.randn(5, 4), torch.arange(5), torch.tensor([1, 2, 1, 0, 3])).backward()
