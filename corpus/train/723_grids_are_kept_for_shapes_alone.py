# source: Bobo-y/flexible-yolov5#111
# mechanism: grid cached in a plain list by the stride probe on the CPU, refreshed only when the feature map's shape changes; the model then moves to the GPU
# phase: evaluation; failing op: aten::add
# expect: raises
import torch
from torch import nn

class Detect(nn.Module):
    def __init__(self, nc, ch, na=2):
        super().__init__()
        self.no, self.na, self.stride = nc + 5, na, None
        self.grid = [torch.zeros(1)] * len(ch)
        self.m = nn.ModuleList(nn.Conv2d(c, self.no * na, 1) for c in ch)

    def make_grid(self, nx, ny):
        return torch.cartesian_prod(torch.arange(ny), torch.arange(nx)).flip(-1).view(1, 1, ny, nx, 2).float()

    def forward(self, feats):
        z = []
        for i, f in enumerate(feats):
            ny, nx = f.shape[-2:]
            y = self.m[i](f).unflatten(1, (self.na, self.no)).permute(0, 1, 3, 4, 2).sigmoid()
            if self.grid[i].shape[2:4] != y.shape[2:4]:  # ALSO
                self.grid[i] = self.make_grid(nx, ny).to(f.device)  # ROOT
            xy = y[..., :2] * 2 - 0.5 + self.grid[i]  # RAISE  # ALSO
            z.append(torch.cat([xy, y[..., 2:]], -1).flatten(1, 3))
        return torch.cat(z, 1)

class Model(nn.Module):
    def __init__(self, nc=3, probe=32):
        super().__init__()
        self.backbone = nn.ModuleList([nn.Conv2d(3, 8, 3, 8, 1), nn.Conv2d(8, 16, 3, 2, 1)])
        self.detection = Detect(nc, (8, 16))
        feats = self.features(torch.zeros(1, 3, probe, probe))
        self.detection([f.detach() for f in feats])
        self.detection.stride = [probe / f.shape[-2] for f in feats]

    def features(self, x):
        return [self.backbone[0](x), self.backbone[1](self.backbone[0](x))]

    def forward(self, x):
        return self.detection(self.features(x))

Model().to("cuda:0").eval()(torch.rand(2, 3, 32, 32, device="cuda:0"))
