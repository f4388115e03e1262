# source: pytorch/functorch#986
# mechanism: a dict of buffers is taken for functional_call before the model moves; parameters follow, buffers are replaced
# phase: forward; aten::mul
# expect: raises
import torch
from torch import nn
from torch.func import functional_call

dev = torch.device("cuda", 0)


class Normalizer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(width))
        self.register_buffer("offset", torch.full((width,), 0.5))

    def forward(self, x):
        return (x - self.offset) * self.gain  # RAISE


def per_sample_losses(model, weights, statistics, x):
    out = functional_call(model, {**weights, **statistics}, (x,))
    return out.square().mean(-1)


def main():
    model = Normalizer(3)  # ALSO
    weights = dict(model.named_parameters())
    statistics = dict(model.named_buffers())  # ROOT
    model.to(dev)  # ALSO
    for _ in range(3):
        per_sample_losses(model, weights, statistics, torch.randn(4, 3, device=dev)).sum().backward()


main()
