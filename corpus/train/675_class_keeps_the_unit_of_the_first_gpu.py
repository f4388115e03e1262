# source: Azure/MS-AMP PR#37
# mechanism: [cached tensor] a class attribute caches a constant on the device of the first caller; gradients on the second GPU get the same tensor
# phase: optimizer step (looking for overflow before it); failing op: aten::mul (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn


class OverflowCheck:
    _unit = None

    @classmethod
    def unit(cls, like):
        if cls._unit is None:  # ALSO
            cls._unit = torch.ones(1, device=like.device)  # ROOT
        return cls._unit  # ALSO

    @classmethod
    def flag(cls, grads):
        found = torch.zeros(1, device=grads[0].device)
        for g in grads:
            peak = g.abs().amax() * cls.unit(found)  # RAISE
            found += peak.isinf()
        return found


stages = [nn.Linear(4, 4).to(f"cuda:{i}") for i in range(2)]
h = torch.randn(2, 4, device="cuda:0")
for stage in stages:
    h = stage(h.to(stage.weight.device))
h.square().sum().backward()
flags = [OverflowCheck.flag([p.grad for p in stage.parameters()]) for stage in stages]
if not any(bool(f) for f in flags):
    for stage in stages:
        torch.optim.SGD(stage.parameters(), lr=0.1).step()
