# source: none; what wrappers with a GPU of their own and loops that collect do when they do it right
# mechanism: results that come back to their caller, stages that hand on, lists that stay or go to the host in step
# phase: forward
# expect: clean
# needs: 2 GPUs
import numpy as np
import torch
from torch import nn


class OnItsGpu(nn.Module):
    def __init__(self, inner, device):
        super().__init__()
        self.inner = inner.to(device)
        self.device = device

    def forward(self, x):
        return self.inner(x.to(self.device)).to(x.device)


class Stage(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.layer = nn.Linear(4, 4).to(device)
        self.device = device

    def forward(self, x):
        x = x.to(self.device)
        return x + self.layer(x)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wrapped = OnItsGpu(nn.Linear(4, 4), "cuda:1")
        self.stages = nn.Sequential(Stage("cuda:0"), Stage("cuda:1"))

    def forward(self, x):
        return self.stages(x + self.wrapped(x))


@torch.no_grad()
def evaluate(model, batches):
    scores, labels, kept, wanted = [], [], [], []
    for x, y in batches:
        found = model(x.to("cuda:0"))
        scores.append(found.softmax(-1).cpu())
        labels.append(y.cpu())
        kept.append(found.argmax(-1))
        wanted.append(y.to("cuda:1"))
    right = torch.cat(kept) == torch.cat(wanted)
    order = np.argsort(torch.cat(scores).amax(-1).numpy())
    return right.float().mean().item(), torch.cat(labels).numpy()[order]


evaluate(Model(), [(torch.rand(5, 4), torch.randint(4, (5,))) for _ in range(3)])
