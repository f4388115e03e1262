# source: own; decoders spread by hand, whose stages share tables that are made once for all of them
# mechanism: the loop over the stages moves the states to each, and not the tables that it gives beside them
# phase: forward; failing op: aten::mul.Tensor
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


def turned(rows, tables):
    wave, tilt = tables  # ALSO
    return rows * wave + rows.flip(-1) * tilt  # RAISE


class Stage(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, rows, tables):
        return rows + turned(self.mix(rows), tables)


class Decoder(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.stages = nn.ModuleList([Stage(width).to(first), Stage(width).to(second)])

    def forward(self, rows):
        angles = torch.arange(rows.shape[-1], device=rows.device)
        tables = (angles.cos(), angles.sin())
        for stage in self.stages:
            rows = rows.to(stage.mix.weight.device)  # ROOT
            rows = stage(rows, tables)  # ALSO
        return rows


Decoder()(torch.randn(2, 4, device=first))
