# source: https://github.com/openai/gpt-oss/pull/43
# mechanism: a table is grown by its owner when the caller finds it too short, and the caller asks for nothing but the length
# phase: forward on the second GPU; failing op: aten::mul.Tensor
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Windows:
    def __init__(self):
        self.longest = 0
        self.taper = None

    def grow(self, length, device):
        self.longest = length
        self.taper = torch.hann_window(2 * length, device=device)[length:]


class Frame(nn.Module):
    def __init__(self, windows, width, bands):
        super().__init__()
        self.windows = windows
        self.bands = nn.Linear(width, bands)

    def forward(self, sound):
        length = sound.shape[-1]
        if length > self.windows.longest:  # ROOT
            self.windows.grow(length, sound.device)
        tapered = sound * self.windows.taper[:length]  # RAISE  # ALSO
        return self.bands(tapered)


windows = Windows()
left = Frame(windows, 6, 2).to("cuda:0")
right = Frame(windows, 6, 2).to("cuda:1")
sound = torch.randn(2, 6)
print(left(sound.to("cuda:0")).device)
print(right(sound.to("cuda:1")).device)
