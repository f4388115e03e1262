# source: none; the shape of hooks that align the inputs of parts on several devices
# mechanism: a forward pre-hook sees both kinds of arguments, moves the ones given by position and returns the others untouched
# phase: forward of the second stage; aten::where
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fold = nn.Linear(width, width)

    def forward(self, rows, *, keep):
        folded = self.fold(rows)
        return torch.where(keep, folded, 0.5)  # RAISE


class Aligner:
    def __init__(self, place):
        self.place = place

    def attach(self, stage):
        stage.to(self.place)
        stage.register_forward_pre_hook(self.align, with_kwargs=True)
        return stage

    def align(self, stage, inputs, named):
        moved = [one.to(self.place, non_blocking=True) for one in inputs]
        return tuple(moved), named  # ROOT


stages = [Aligner(f"cuda:{k}").attach(Stage(3)) for k in range(2)]
rows = torch.randn(4, 3, device="cuda:0")
keep = rows > 0
for stage in stages:
    rows = stage(rows, keep=keep)
print(rows.device)
