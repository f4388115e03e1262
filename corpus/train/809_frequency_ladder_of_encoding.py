# source: jmclong/random-fourier-features-pytorch PR#4, fixes #2
# mechanism: [factory call without device=] frequency exponents of a positional encoding made with torch.arange() and no device in a free function; the module that calls it owns nothing that .to() could move
# phase: forward; failing op: aten::mul (cpu 1-D x cuda 3-D)
# expect: raises
import math
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def positional_encoding(v, sigma, m):
    j = torch.arange(m)  # ROOT
    coeffs = 2 * math.pi * sigma ** (j / m)  # ALSO
    vp = coeffs * v.unsqueeze(-1)  # RAISE  # ALSO
    return torch.cat((vp.cos(), vp.sin()), dim=-1).flatten(-2)

class PositionalEncoding(nn.Module):
    def __init__(self, sigma, m):
        super().__init__()
        self.sigma, self.m = sigma, m

    def forward(self, v):
        return positional_encoding(v, self.sigma, self.m)

net = nn.Sequential(PositionalEncoding(10.0, 4), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, 3)).to(dev)
net(torch.rand(5, 2, device=dev))
