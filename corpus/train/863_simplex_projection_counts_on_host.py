# source: harvardnlp/pytorch-struct PR#88; sunlabuiuc/PyHealth PR#1139
# mechanism: [custom autograd Function] sparsemax Function projects onto the simplex in a helper of its own, which counts the sorted entries with a range made without a device
# phase: forward of the Function; failing op: aten::div (cuda sums, cpu counts)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def counts(v):
    return torch.arange(1, v.shape[-1] + 1, dtype=v.dtype)  # ROOT

def project_simplex(v, z=1.0):
    u, _ = v.sort(dim=-1, descending=True)
    excess = u.cumsum(-1) - z
    support = u - excess / counts(v) > 0  # RAISE  # ALSO
    rho = support.sum(-1, keepdim=True)
    theta = excess.gather(-1, rho - 1) / rho
    return (v - theta).clamp(min=0)

class Sparsemax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        probs = project_simplex(scores)
        ctx.save_for_backward(probs)
        return probs

    @staticmethod
    def backward(ctx, g):
        probs, = ctx.saved_tensors
        inside = (probs > 0).to(g.dtype)
        mean = (g * inside).sum(-1, keepdim=True) / inside.sum(-1, keepdim=True)
        return inside * (g - mean)

score = nn.Linear(5, 4).to(dev)
(Sparsemax.apply(score(torch.randn(3, 5, device=dev))) * torch.arange(4.0, device=dev)).sum().backward()
