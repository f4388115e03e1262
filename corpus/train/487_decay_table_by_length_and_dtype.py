# source: retention layers whose table of decays is kept by length and dtype, with layers on two GPUs
# mechanism: the key of a cache has the dtype, to which the entry is cast, and not the device
# phase: forward; aten::mul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

_decays = {}


def decay_table(length, gamma, like):
    device, dtype = like.device, like.dtype
    key = (length, gamma, dtype)  # ROOT
    if key not in _decays:  # ALSO
        steps = torch.arange(length, device=device)
        _decays[key] = (gamma ** (steps[:, None] - steps[None, :]).clamp(min=0)).tril().to(dtype)
    return _decays[key]  # ALSO


class Retention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.both = nn.Linear(width, 2 * width)

    def forward(self, rows):
        q, k = self.both(rows).chunk(2, -1)
        weights = q @ k.transpose(1, 2) * decay_table(rows.shape[1], 0.9, rows)  # RAISE
        return weights @ rows


near, far = Retention(4).to("cuda:0"), Retention(4).to("cuda:1")
rows = near(torch.randn(2, 6, 4, device="cuda:0"))
far(rows.to("cuda:1"))
