# source: none; lists that are filled by `extend()` and `+=`
# mechanism: of two lists of a survey one takes in what was brought to the host, the other what is on the accelerator
# phase: end of the survey; failing op: aten::where.self
# expect: raises
import torch
from torch import nn

device = torch.device("cuda")


class Survey:
    def __init__(self):
        self.near = []
        self.depths = []

    def add(self, points, depths):
        self.near += [points.norm(dim=-1) < 2.0]  # ROOT
        self.depths.extend((depths.cpu(),))  # ALSO

    def close(self):
        near = torch.cat(self.near)  # ALSO
        depths = torch.cat(self.depths)
        return torch.where(near, depths, depths.new_zeros(()).expand_as(depths)).sum()  # RAISE


net = nn.Linear(3, 3).to(device)
survey = Survey()
for _ in range(2):
    points = net(torch.randn(4, 3, device=device)).detach()
    survey.add(points, points[:, 2])
print(survey.close())
