# source: teamtomo/torch-cubic-spline-grids PR#14 ('bugfix: use the matrix which has been registered as a buffer')
# mechanism: [plain attribute tensor] the spline matrix is registered as a buffer and moves, but forward still takes the class attribute it was made from
# phase: forward; failing op: aten::matmul
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def interpolate(grid, u, matrix):
    at = u * (grid.shape[0] - 4)
    i = at.floor().clamp(0, grid.shape[0] - 4).long()
    points = grid[i[:, None] + torch.arange(4, device=grid.device)]
    t = (at - i)[:, None] ** torch.arange(4, device=u.device)
    return ((t @ matrix) * points).sum(-1)  # RAISE

class SplineGrid(nn.Module):
    _matrix = None

    def __init__(self, resolution):
        super().__init__()
        self.data = nn.Parameter(torch.zeros(resolution))
        self.register_buffer("interpolation_matrix", self._matrix)

    def forward(self, u):
        return interpolate(self.data, u, matrix=self._matrix)  # ROOT

class CatmullRomGrid(SplineGrid):
    _matrix = torch.tensor([[0., 2, 0, 0], [-1, 0, 1, 0], [2, -5, 4, -1], [-1, 3, -3, 1]]) / 2

CatmullRomGrid(8).to(dev)(torch.rand(5, device=dev))
