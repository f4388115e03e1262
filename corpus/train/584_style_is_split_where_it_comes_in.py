# source: own
# mechanism: a generator lies on two GPUs; the style is split in its second half, on the GPU that it came on
# phase: forward; failing op: aten::addcmul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def styled(x, gain, bias):
    return torch.addcmul(bias, x, gain)  # RAISE


class Generator(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.low = nn.Linear(dim, dim).to("cuda:0")
        self.high = nn.Linear(dim, dim).to("cuda:1")

    def coarse(self, noise):
        return self.low(noise).tanh()

    def fine(self, x, style):
        gain, bias = style.split(style.shape[1] // 2, dim=1)  # ROOT
        return styled(self.high(x), gain, bias)  # ALSO

    def forward(self, noise, style):
        return self.fine(self.coarse(noise).to("cuda:1"), style)  # ALSO


Generator(4)(torch.randn(2, 4, device="cuda:0"), torch.randn(2, 8, device="cuda:0"))
