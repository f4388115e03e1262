# source: ProjectNeura/MIPCandy#32, PR#33
# mechanism: [helper with its own device] a mixin that cuts scans into windows has a device of its own, "cpu" unless told; the weights for joining are made there while the windows follow the scan
# phase: evaluation (joining windows); failing op: aten::mul
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class Cut:
    size: tuple
    kernel: int
    stride: int
    batch: int


class Windowed:
    kernel = 4

    def __init__(self, device="cpu"):
        self._device = torch.device(device)

    def bump(self, k, width=0.5, device=None):
        x = torch.linspace(-1, 1, k, device=self._device if device is None else device)
        return torch.exp(-0.5 * (x / width) ** 2)

    def cut(self, scan):
        b, c, *size = scan.shape
        k, s = self.kernel, self.kernel // 2
        cols = F.unfold(scan, k, stride=s)
        windows = cols.transpose(1, 2).reshape(-1, c, k, k)
        return windows, Cut(tuple(size), k, s, b)

    def join(self, windows, cut):
        k = cut.kernel
        bump = self.bump(k)  # ROOT
        weight = (bump[:, None] * bump[None]).view(1, 1, k, k)  # ALSO
        weighted = windows * weight  # RAISE
        fold = lambda t: F.fold(t.reshape(cut.batch, -1, t[0].numel()).transpose(1, 2), cut.size, k, stride=cut.stride)
        return fold(weighted) / fold(weight.expand(len(windows), 1, k, k)).clamp(min=1e-6)


class KneePredictor(Windowed):
    def __init__(self, net, device="cpu"):
        super().__init__(device)
        self.net = net

    @torch.no_grad()
    def __call__(self, scan):
        windows, cut = self.cut(scan)
        return self.join(self.net(windows).sigmoid(), cut)


net = nn.Conv2d(1, 1, 3, padding=1).cuda()
predict = KneePredictor(net)  # ALSO
print(predict(torch.rand(2, 1, 8, 8).cuda()).shape)
