# source: what correct programs do beside the mistakes of 364 to 376
# mechanism: arrays from the host's copies, refused and fallen back; stages that hand over; objects that move themselves
# phase: all
# expect: clean
# needs: 2 GPUs
import copy

import numpy as np
import torch
from torch import nn


class Stage(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.device = device
        self.body = nn.Linear(width, width).to(device)

    def forward(self, x):
        return self.body(x.to(self.device)).relu()


class Agent:
    def __init__(self, width):
        self.network = nn.Linear(width, 2)
        self.target = copy.deepcopy(self.network)

    def to(self, device):
        for network in (self.network, self.target):
            network.to(device)
        return self


class Pool:
    def __init__(self):
        self.grids = []

    def keep(self, grid):
        self.grids.append(grid)


def to_device(batch, device):
    batch.update({name: value.to(device) for name, value in batch.items()})


stages = [Stage(4, "cuda:0"), Stage(4, "cuda:1")]
optimizer = torch.optim.Adam([p for stage in stages for p in stage.parameters()], amsgrad=True)
for _ in range(3):
    batch = {"x": torch.randn(3, 4), "y": torch.zeros(3, 4)}
    to_device(batch, "cuda:1")
    out = batch["x"]
    for stage in stages:
        out = stage(out)
    optimizer.zero_grad()
    nn.functional.mse_loss(out, batch["y"]).backward()
    optimizer.step()
errors = out.detach().abs().amax(1).cpu().numpy()
order = np.unique(errors.round(3), return_index=True)[1]

agent = Agent(4).to("cuda:0")
agent.target(batch["x"].to("cuda:0"))
model, pool = nn.BatchNorm1d(4).to("cuda:0"), Pool()
pool.keep(model.running_mean)
torch.randn(4, device="cuda:0") * pool.grids[0]
master = nn.Parameter(torch.zeros(4))
master.grad = torch.ones(4, device="cuda:0").cpu()
torch.optim.SGD([master], lr=0.1).step()
