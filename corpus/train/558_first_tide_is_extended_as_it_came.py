# source: none; a list of a module that is filled by `extend()`, `+=` and `append()`
# mechanism: levels that are measured are moved when they are added, the one that a series begins with is not
# phase: report; failing op: aten::stack
# expect: raises
import torch
from torch import nn


class Tide(nn.Module):
    def __init__(self):
        super().__init__()
        self.turn = nn.Linear(3, 3)
        self.levels = []

    def begin(self, level):
        self.levels.extend([level])  # ROOT

    def measure(self, level):
        self.levels += [level.to(self.turn.weight.device)]

    def foresee(self, hours):
        level = self.levels[-1]
        for _ in range(hours):
            level = self.turn(level)
            self.levels.append(level)

    def report(self):
        return torch.stack(self.levels).mean(0)  # RAISE


tide = Tide().cuda()
tide.begin(torch.zeros(3))
tide.measure(torch.ones(3))
tide.foresee(3)
print(tide.report())
