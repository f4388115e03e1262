# source: https://discuss.pytorch.org/t/why-no-nn-bufferlist-like-function-for-registered-buffer-tensor/18884
# mechanism: buffers are registered by name and kept in a list to iterate over; the move makes new buffers
# phase: forward; aten::mul
# expect: raises
import torch
from torch import nn


class Pyramid(nn.Module):
    def __init__(self, strides):
        super().__init__()
        self.head, self.grids = nn.Linear(3, 1), []
        for number, stride in enumerate(strides):
            self.register_buffer(f"grid_{number}", torch.arange(3.0) * stride)
            self.grids.append(getattr(self, f"grid_{number}"))  # ROOT

    def forward(self, levels):
        return [self.head(level * grid) for level, grid in zip(levels, self.grids)]  # RAISE  # ALSO


net = Pyramid((8, 16)).to("cuda")
net([torch.ones(2, 3, device="cuda"), torch.ones(2, 3, device="cuda")])
