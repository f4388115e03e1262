# source: open-mmlab/mmcv PR#1418
# mechanism: [plain attribute function] the bound forward of a child is wrapped and stored in an attribute; a deep copy still calls the forward of the original, whose weights stay on the CPU
# phase: forward; failing op: aten::linear / addmm
# expect: raises
# root: MultiheadAttention.__init__: self.attn.forward = _bnc_to_nbc(self.attn.forward) (fix: transpose in forward, store no function)
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def time_first(fn):
    def inner(x):
        return fn(x.transpose(0, 1)).transpose(0, 1)  # RAISE
    return inner

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.Linear(4, 4)
        self.attn.forward = time_first(self.attn.forward)  # ROOT

    def forward(self, x):
        return x + self.attn(x)

base = Layer()
net = nn.Sequential(*[copy.deepcopy(base) for _ in range(2)]).to(dev)
net(torch.randn(2, 3, 4, device=dev))
