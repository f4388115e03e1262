# source: intel/auto-round PR#2303 (review: 'the new grouped experts forward requires all active experts to be on the same device')
# mechanism: [expert placement] placement pre-pass keeps chunks of experts together but spreads the chunks over the GPUs; the grouped forward stacks the weights of all active experts
# phase: tuning forward; failing op: aten::stack (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
# root: _preassign_moe_experts: chunk-wise spread of one container over several devices
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Experts(nn.ModuleList):
    def forward(self, x, idx):
        active = idx.unique().tolist()
        w = torch.stack([self[e].weight for e in active])  # RAISE
        out = torch.einsum("td,eod->teo", x, w)
        hit = (idx[:, None] == torch.tensor(active, device=idx.device)).float()
        return (out * hit.unsqueeze(-1)).sum(1)

def preassign(experts, devices, chunk):
    table = {}
    for i in range(0, len(experts), chunk):
        for e in range(i, min(i + chunk, len(experts))):
            table[e] = devices[(i // chunk) % len(devices)]  # ROOT
    return table

experts = Experts(nn.Linear(3, 3, bias=False) for _ in range(4))
gpus = [dev, torch.device('cuda', 1)]
for e, where in preassign(experts, gpus, chunk=2).items():
    experts[e].to(where)
experts(torch.randn(6, 3, device=dev), torch.tensor([0, 1, 2, 3, 1, 2], device=dev))
