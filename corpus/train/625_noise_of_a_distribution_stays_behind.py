# source: https://pytorch.org/docs/stable/distributions.html
# expect: raises
# A decoder is given a scale for its noise, and keeps that in a distribution. Moving the decoder does not reach what a distribution has.
import torch
from torch import nn
from torch.distributions import Independent, Normal


def noise(spread):
    return Independent(Normal(torch.zeros_like(spread), spread), 1)


class Decoder(nn.Module):
    def __init__(self, width, spread):
        super().__init__()
        self.core = nn.Linear(width, width)
        self.models = {"noise": noise(spread), "width": width}  # ROOT

    def forward(self, code):
        mean = self.core(code)
        return self.models["noise"].log_prob(mean)  # RAISE


def build(width):
    spread = torch.linspace(0.5, 1.0, width)
    return Decoder(width, spread)


decoder = build(4).cuda()
print(decoder(torch.randn(2, 4, device="cuda")))
