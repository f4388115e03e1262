# source: own
# mechanism: an object that brings weights over is registered on a ModuleDict, whose experts are called one by one
# phase: forward; failing op: aten::addmm
# expect: raises
import torch
from torch import nn


class Experts(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gate = nn.Linear(dim, 2)
        self.pool = nn.ModuleDict({name: nn.Linear(dim, dim) for name in ("near", "far")})

    def forward(self, x):
        near, far = self.gate(x).softmax(-1).unbind(-1)
        out = self.pool["near"](x) * near[:, None]  # RAISE
        return out + self.pool["far"](x) * far[:, None]


class BringOver:
    def __init__(self, device):
        self.device = device

    def __call__(self, module, inputs):
        module.to(self.device)


def load_late(model, device):
    bring = BringOver(device)
    model.gate.register_forward_pre_hook(bring)
    model.pool.register_forward_pre_hook(bring)  # ROOT
    return model


load_late(Experts(4), torch.device("cuda", 0))(torch.randn(3, 4, device="cuda:0"))
