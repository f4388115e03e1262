# source: own
# mechanism: windows are kept by size for all instances, and made with whatever the first caller passes on
# phase: second GPU; failing op: aten::mul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

_windows = {}


def window(size, **like):
    key = f"hann-{size}"  # ROOT
    if key not in _windows:  # ALSO
        _windows[key] = torch.hann_window(size, **like).sqrt()
    return _windows[key]  # ALSO


class Frames(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size, self.out = size, nn.Linear(size, 2)

    def forward(self, wave):
        frames = wave.unfold(-1, self.size, self.size // 2)
        return self.out(frames * window(self.size, device=wave.device))  # RAISE


for device in ("cuda:0", "cuda:1"):
    Frames(8).to(device)(torch.randn(2, 32, device=device))
