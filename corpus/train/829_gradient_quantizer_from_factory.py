# source: es-ude/elastic-ai.creator#471, PR#548
# mechanism: [custom autograd Function] factory builds a Function class around a fixed-point configuration whose range tensors were made on the default device; the network moves, the configuration does not
# phase: backward; failing op: aten::clamp (cuda gradient, cpu 1-element bounds)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class FixedPoint:
    def __init__(self, total_bits, frac_bits):
        self.step = 2.0 ** -frac_bits
        top = 2 ** (total_bits - 1)
        self.limits = torch.tensor([[-top], [top - 1]]) * self.step  # ROOT

    def quantize(self, t):
        low, high = self.limits  # ALSO
        return torch.clamp((t / self.step).round() * self.step, low, high)  # RAISE

def make_quantizer(conf):
    class Quantize(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return conf.quantize(g)
    return Quantize

class QuantLinear(nn.Linear):
    def __init__(self, i, o, conf):
        super().__init__(i, o)
        self.op = make_quantizer(conf)

    def forward(self, x):
        return self.op.apply(super().forward(x))

net = nn.Sequential(QuantLinear(3, 4, FixedPoint(8, 4)), nn.ReLU(), QuantLinear(4, 1, FixedPoint(8, 4))).to(dev)
net(torch.randn(5, 3, device=dev)).sum().backward()
