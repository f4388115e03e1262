# source: none; the shape of residual blocks whose parts are on two accelerators, each with a hook that moves its input
# mechanism: a hook brings the input to the second part, which is put on another accelerator; nothing brings its result back
# phase: forward; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


def fetch(part, inputs):
    place = next(part.parameters()).device
    return tuple(one.to(place) for one in inputs)


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.rows = nn.Linear(width, width)
        self.columns = nn.Linear(width, width)
        for part in (self.rows, self.columns):
            part.register_forward_pre_hook(fetch)

    def forward(self, grid):
        return grid + self.columns(self.rows(grid).relu())  # RAISE  # ALSO


mixer = Mixer(4)
mixer.rows.to("cuda:0")
mixer.columns.to("cuda:1")  # ROOT
print(mixer(torch.ones(2, 4, device="cuda:0")).device)
