# source: losses of a trainer that are entries of a dictionary or list, of which some have weights
# mechanism: of the judges in a list one has weights of its own; the list is no module, and nothing moves what it holds
# phase: scoring; failing op: aten::addmm
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


def by_length(jump):
    return jump.norm(dim=-1)


class Referee(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.opinion = nn.Linear(width, 1)

    def forward(self, jump):
        return self.opinion(jump)[..., 0]  # RAISE


class StrictReferee(Referee):
    def __init__(self, width, penalty=0.5):
        super().__init__(width)
        self.penalty = penalty

    def forward(self, jump):
        return super().forward(jump) - self.penalty


class League:
    def __init__(self, athlete):
        self.athlete = athlete.to(dev)
        self.judges = [
            by_length,
            StrictReferee(3),  # ROOT
        ]

    def score(self, efforts):
        jumps = self.athlete(efforts)
        return torch.stack([judge(jumps) for judge in self.judges]).mean()


League(nn.Linear(5, 3)).score(torch.randn(4, 5, device=dev))
