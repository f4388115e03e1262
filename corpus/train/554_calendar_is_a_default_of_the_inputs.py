# source: none; `update()` with a keyword adds what a helper made to a dictionary that is unpacked at once
# mechanism: a forecaster moves what it is asked about, and adds the days of a calendar of its own as they are
# phase: forward; failing op: aten::cat
# expect: raises
import torch
from torch import nn


class Calendar:
    def days(self, count):
        return torch.arange(count).remainder(7).float()[:, None]


class Forecast(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(3, 1)

    def forward(self, load, wind, days):
        level = load - load.mean()
        return self.mix(torch.cat((level, wind, days), dim=1))  # RAISE


class Forecaster:
    def __init__(self, net, calendar, device):
        self.net = net.to(device)
        self.calendar = calendar
        self.device = device

    def inputs(self, **asked):
        moved = {name: value.to(self.device) for name, value in asked.items()}
        days = self.calendar.days(len(asked["load"]))  # ALSO
        moved.update(days=days)  # ROOT
        return moved

    def ask(self, **asked):
        return self.net(**self.inputs(**asked))


forecaster = Forecaster(Forecast(), Calendar(), "cuda")
print(forecaster.ask(load=torch.ones(5, 1), wind=torch.ones(5, 1)))
