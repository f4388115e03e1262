# source: none; the shape of tables that are made like a value and kept
# mechanism: a table is made on the device of the value it is asked for, and kept by its length alone; the first one who asks is on the CPU
# phase: forward; aten::mul
# expect: raises
import torch
from torch import nn


class Windows:
    def __init__(self):
        self.kept = {}

    def window(self, length, like):
        name = f"hann-{length}"  # ROOT
        if name not in self.kept:  # ALSO
            ramp = torch.arange(length, device=like.device, dtype=like.dtype)
            self.kept[name] = 0.5 - 0.5 * torch.cos(6.2832 * ramp / length)
        return self.kept[name]  # ALSO


class Frames(nn.Module):
    def __init__(self, windows, length):
        super().__init__()
        self.windows, self.length = windows, length
        self.mix = nn.Linear(length, length)

    def forward(self, signal):
        pieces = self.mix(signal.unfold(-1, self.length, self.length))
        shape = self.windows.window(self.length, like=pieces)
        tapered = shape.square()
        return (pieces * tapered).sum(-1)  # RAISE


frames = Frames(Windows(), 4)
print("pieces:", frames(torch.zeros(1, 8)).shape[-1])
frames.cuda()
print(frames(torch.randn(2, 8, device="cuda")).shape)
