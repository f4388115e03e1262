# source: own
# mechanism: a function that is told a device by way of other functions makes one grid there, and one on an accelerator that it names itself
# phase: preview on the CPU; failing op: aten::add
# expect: raises
import torch


def grids(size, cell, device):
    corners = torch.arange(0, size, cell, device=device)
    centre = torch.full((2,), cell / 2, device="cuda")  # ROOT
    return corners, centre


class Layout:
    def __init__(self, sizes, **options):
        self.levels = [grids(size, 2, **options) for size in sizes]

    def points(self):
        for corners, centre in self.levels:
            pairs = torch.cartesian_prod(corners, corners).float()
            yield pairs + centre  # RAISE


def preview(layout):
    return [points.tolist() for points in layout.points()]


preview(Layout([4, 6], device="cpu"))
