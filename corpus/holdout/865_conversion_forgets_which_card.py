# source: pytorch/pytorch PR#2726 (fix bug in autograd type() for non-default GPU input)
# mechanism: [custom autograd Function] type conversion remembers its input's type, not its device index; backward converts the gradient to that type, which means the current GPU, not the input's
# phase: backward; failing op: autograd validate_outputs ('returned an invalid gradient at index 0 - expected device cuda:1 but got cuda:0')
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Cast(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, kind):
        ctx.kind = x.type()
        return x.type(kind)

    @staticmethod
    def backward(ctx, g):
        return g.type(ctx.kind), None  # ROOT

class HostHead(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim, dtype=torch.double))

    def forward(self, h):
        h = Cast.apply(h, "torch.DoubleTensor")
        return (h * self.scale).logsumexp(-1).mean()

class Experiment:
    def __init__(self, where):
        self.where = where
        self.body, self.head = nn.Linear(4, 3).to(where), HostHead(3)

    def step(self, x):
        loss = self.head(self.body(x.to(self.where)))
        loss.backward()  # RAISE
        return loss

for where in (dev, d1):
    Experiment(where).step(torch.randn(6, 4))
