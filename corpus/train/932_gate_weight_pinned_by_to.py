# source: davidmrau/mixture-of-experts#12
# mechanism: [expert placement] nn.Parameter(...).to(device) is a plain tensor when the device differs, so the gate's weight is not registered and stays on the GPU it was made for
# phase: forward; failing op: aten::mm (cuda:1 x cuda:0)
# expect: raises
# needs: 2 GPUs
# root: MoE.__init__: self.w_gate = nn.Parameter(torch.zeros(...)).to(self.device)
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
class MoE(nn.Module):
    def __init__(self, n, device):
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])
        self.w_gate = nn.Parameter(torch.zeros(4, n)).to(device)  # ROOT

    def forward(self, x):
        gates = (x @ self.w_gate).softmax(-1)  # RAISE
        return sum(g.unsqueeze(-1) * e(x) for g, e in zip(gates.unbind(-1), self.experts))

moe = MoE(3, dev).to(d1)
moe(torch.ones(2, 4, device=d1))
