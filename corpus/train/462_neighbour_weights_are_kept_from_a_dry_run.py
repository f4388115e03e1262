# source: none; the order of points is turned into weights once, by a method, and kept as a plain attribute
# mechanism: a dry run on the CPU fills the attribute before the model is moved; the later calls find it filled
# phase: forward; aten::matmul
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Smooth(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.near = None  # ALSO

    def weigh(self, points):
        order = torch.arange(len(points), device=points.device)
        close = (-(order[:, None] - order).abs()).exp()
        return close / close.sum(1, keepdim=True)

    def forward(self, features, points):
        if self.near is None:  # ALSO
            self.near = self.weigh(points)  # ROOT
        hidden = self.project(features)
        return self.near @ hidden  # RAISE  # ALSO


points = torch.rand(5, 2)
features = torch.rand(5, 4)
model = Smooth(4)
with torch.no_grad():
    print("output", tuple(model(features, points).shape))
model = model.to(dev)
out = model(features.to(dev), points.to(dev))
out.sum().backward()
