# source: sniklaus/pytorch-spynet#17
# mechanism: a sampling grid is cached by the shape of the flow; the second replica gets the first one's
# phase: forward; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

grids = {}


def identity(flow):
    key = tuple(flow.shape)  # ROOT
    if key not in grids:  # ALSO
        height, width = flow.shape[-2:]
        rows = torch.linspace(-1, 1, height, device=flow.device)
        columns = torch.linspace(-1, 1, width, device=flow.device)
        grids[key] = torch.stack(torch.meshgrid(columns, rows, indexing="xy")).expand_as(flow)
    return grids[key]  # ALSO


class Warp(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = nn.Conv2d(3, 2, 3, padding=1)

    def forward(self, image):
        flow = self.flow(image)
        field = identity(flow) + flow  # RAISE
        return nn.functional.grid_sample(image, field.permute(0, 2, 3, 1), align_corners=False)


images = torch.randn(4, 3, 8, 8)
for device, part in zip(("cuda:0", "cuda:1"), images.chunk(2)):
    Warp().to(device)(part.to(device))
