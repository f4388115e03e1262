# source: swz30/MPRNet#128
# mechanism: the losses of all stages, which are differentiated, meet weights that are an array of NumPy
# phase: training loop; Tensor.__array__
# expect: raises
import numpy as np
import torch
from torch import nn


class StagedRestorer(nn.Module):
    def __init__(self, stages):
        super().__init__()
        self.stages = nn.ModuleList(nn.Conv2d(1, 1, 3, padding=1) for _ in range(stages))

    def forward(self, worn):
        restored = []
        for stage in self.stages:
            worn = worn + stage(worn)
            restored.append(worn)
        return restored[::-1]


class SmoothLoss(nn.Module):
    def forward(self, x, y):
        return ((x - y).pow(2) + 1e-6).sqrt().mean()


def edges(x):
    return x - nn.functional.avg_pool2d(x, 3, 1, 1)


options = {"stages": 3, "decay": 0.7, "edge": 0.05}
model = StagedRestorer(options["stages"]).cuda()
criterion = SmoothLoss().cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-4)
stage_weights = options["decay"] ** np.arange(options["stages"])  # ROOT

for epoch in range(2):
    for prints in torch.rand(3, 4, 1, 8, 8):
        target = prints.cuda()
        restored = model(target + 0.1 * torch.randn_like(target))
        loss_plain = torch.stack([criterion(r, target) for r in restored])
        loss_edge = torch.stack([criterion(edges(r), edges(target)) for r in restored])
        losses = loss_plain + options["edge"] * loss_edge
        loss = (losses * stage_weights).sum()  # RAISE  # ALSO
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
