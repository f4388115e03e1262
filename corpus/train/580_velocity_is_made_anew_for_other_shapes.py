# source: own
# mechanism: a smoother keeps its last value and begins anew where the shape differs; the device is not asked for
# phase: after the move; failing op: aten::add
# expect: raises
import torch
from torch import nn


class Smoother:
    def __init__(self, keep=0.5):
        self.keep, self.last = keep, None

    def __call__(self, signal):
        if self.last is None or self.last.shape[-1] != signal.shape[-1]:  # ROOT
            self.last = torch.zeros_like(signal)
        self.last = self.blend(signal)
        return self.last

    def blend(self, signal):
        return self.keep * self.last + (1 - self.keep) * signal  # RAISE  # ALSO


class Tracker(nn.Module):
    def __init__(self):
        super().__init__()
        self.net, self.smooth = nn.Linear(3, 2), Smoother()

    @torch.no_grad()
    def forward(self, frame):
        return self.smooth(self.net(frame))


tracker = Tracker()
tracker(torch.zeros(4, 3))
tracker.cuda()
tracker(torch.randn(4, 3, device="cuda"))
