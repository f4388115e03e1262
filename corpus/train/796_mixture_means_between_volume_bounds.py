# source: balbasty/cornucopia PR#22 (issue #21)
# mechanism: [zero-dim scalar] bounds of a CUDA volume are 0-dim CUDA tensors; they scale a vector of random numbers drawn on the CPU
# phase: augmentation; failing op: aten::mul (cpu 1-D x cuda 0-d)
# expect: raises
import torch

dev = torch.device("cuda", 0)


def between(unit, low, high):
    return unit * (high - low) + low  # RAISE


class ContrastMixture:
    def __init__(self, nk=4):
        self.nk = nk

    def make_final(self, x):
        unit = torch.rand(self.nk)  # ROOT
        mu = between(unit, x.min(), x.max())
        sigma = (x.max() - x.min()) / self.nk
        return mu, sigma

    def __call__(self, x):
        mu, sigma = self.make_final(x)
        w = torch.exp(-0.5 * ((x[..., None] - mu) / sigma) ** 2)
        return (w * mu.flip(0)).sum(-1) / w.sum(-1)


ContrastMixture()(torch.rand(2, 6, 6, device=dev))
