# source: pytorch/pytorch#59075, PR#59234
# mechanism: [factory call without device=] histogram lives on the device of the observed activation, the bin numbers of the error search are made with torch.arange and no device; the min-max path never needs them
# phase: quantization parameters; failing op: aten::mul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class HistObserver(nn.Module):
    def __init__(self, bins=16):
        super().__init__()
        self.bins = bins
        self.register_buffer("hist", torch.zeros(bins))

    def forward(self, x):
        self.lo, self.hi = x.min().item(), x.max().item()
        self.hist += torch.histc(x.detach(), self.bins, self.lo, self.hi)
        return x

    def spread(self, begin, end, density):
        return density * (end ** 3 - begin ** 3) / 3  # RAISE

    def error(self, levels):
        width = (self.hi - self.lo) / self.bins
        src = torch.arange(self.bins)  # ROOT
        centre = ((src * width / (width * self.bins / levels)).floor() + 0.5) * width * self.bins / levels
        return self.spread(src * width - centre, (src + 1) * width - centre, self.hist / width).sum()

    def qparams(self):
        return min((self.error(n), n) for n in (2, 4, 8))

obs = HistObserver().to(dev)
obs(torch.randn(64, device=dev))
obs.qparams()
