# source: Nixtla/neuralforecast#711
# mechanism: [strategy table, one member wrong] the scaler's rule is taken from a dictionary; only the rule that scales nothing makes its shift and width on the CPU, and they are used first when samples are drawn
# phase: prediction, sampling; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda:0")


def level_and_width(window):
    return window.mean(1, keepdim=True), window.std(1, keepdim=True) + 1e-4


def nothing(window):
    shape = (window.shape[0], 1)
    return torch.zeros(shape), torch.ones(shape)  # ROOT


RULES = {"standard": level_and_width, "none": nothing}


class Scaler(nn.Module):
    def __init__(self, rule):
        super().__init__()
        self.rule = rule

    def forward(self, window):
        self.shift, self.width = RULES[self.rule](window)
        return window if self.rule == "none" else (window - self.shift) / self.width


class GaussianHead(nn.Module):
    def undo(self, raw, shift, width):
        mean, spread = raw.chunk(2, dim=1)
        return mean * width + shift, nn.functional.softplus(spread) * width  # RAISE

    def sample(self, raw, shift, width, count):
        mean, spread = self.undo(raw, shift, width)
        return mean + spread * torch.randn(count, *mean.shape, device=mean.device)


class Forecaster(nn.Module):
    def __init__(self, past, horizon, rule="none"):
        super().__init__()
        self.scaler, self.head = Scaler(rule), GaussianHead()
        self.net = nn.Linear(past, 2 * horizon)

    def predict(self, window, count=20):
        raw = self.net(self.scaler(window))
        return self.head.sample(raw, self.scaler.shift, self.scaler.width, count).quantile(0.5, dim=0)


Forecaster(24, 6).to(dev).predict(torch.randn(8, 24, device=dev))
