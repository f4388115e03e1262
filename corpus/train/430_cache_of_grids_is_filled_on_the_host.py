# source: pytorch/vision#1738
# mechanism: a cache of grids is keyed by sizes; a dry run on the CPU fills it, and later calls get its entries
# phase: forward; aten::add
# expect: raises
import torch
from torch import nn


class Grids(nn.Module):
    def __init__(self):
        super().__init__()
        self.known = {}

    def make(self, height, width, device):
        rows = torch.arange(height, device=device).float()
        columns = torch.arange(width, device=device).float()
        return torch.stack(torch.meshgrid(rows, columns, indexing="ij"))

    def lookup(self, height, width, device):
        size = (height, width)  # ROOT
        if size not in self.known:  # ALSO
            self.known[size] = self.make(height, width, device)
        return self.known[size]  # ALSO

    def forward(self, features):
        height, width = features.shape[-2:]
        return torch.cat([self.lookup(height, width, features[0].device)] * 2)


def centred(offsets, grid):
    middle = grid.mean(dim=(1, 2), keepdim=True)
    return offsets + (grid - middle)  # RAISE


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Conv2d(3, 4, 3, padding=1)
        self.grids = Grids()

    def forward(self, images):
        offsets = self.features(images)
        return centred(offsets, self.grids(offsets))


model = Detector()
print("outputs:", tuple(model(torch.zeros(1, 3, 8, 8)).shape))
model.to("cuda")
print(model(torch.rand(2, 3, 8, 8, device="cuda")).sum().item())
