# source: https://github.com/pytorch/pytorch/pull/36623
# mechanism: the constructor collects its buffers by name, and goes on reading the collection after the module was moved
# phase: forward; failing op: aten::mul.Tensor
# expect: raises
import torch
from torch import nn


class Scales(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        for size in sizes:
            self.register_buffer(f"taper_{size}", torch.linspace(0, 1, size))
        self.tapers = {size: getattr(self, f"taper_{size}") for size in sizes}  # ROOT
        self.mix = nn.Linear(len(sizes), 1)

    def forward(self, sound):
        parts = []
        for size, taper in self.tapers.items():  # ALSO
            frames = sound.unfold(-1, size, size) * taper  # RAISE  # ALSO
            parts.append(frames.square().mean((-1, -2)))
        return self.mix(torch.stack(parts, -1))


scales = Scales([4, 8])
scales.cuda()
print(scales(torch.randn(3, 16).cuda()).shape)
