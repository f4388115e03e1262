# source: deepspeedai/DeepSpeed PR#5519
# mechanism: the gate takes the counts of the experts to the CPU for a report, and then computes the capacity and the drops of tokens from this copy.
# expect: raises
import math

import torch
import torch.nn.functional as F
from torch import nn


def static_capacity(tokens, experts, factor, min_capacity):
    return max(math.ceil(tokens / experts * factor), min_capacity)


def top1_gating(logits, capacity_factor, min_capacity, balance):
    gates = F.softmax(logits, dim=1)
    index = gates.argmax(dim=1)
    num_experts = gates.shape[1]
    mask = F.one_hot(index, num_classes=num_experts)
    exp_counts = mask.sum(dim=0).detach().to("cpu")  # ROOT
    capacity = static_capacity(gates.shape[0], num_experts, capacity_factor, min_capacity)
    if balance:
        share = gates.mean(dim=0)
        fraction = exp_counts.float() / gates.shape[0]  # ALSO
        l_aux = (share * fraction).sum() * num_experts  # RAISE # ALSO
    else:
        l_aux = gates.new_zeros(())
    positions = mask.cumsum(dim=0) - 1
    mask = mask * (positions < capacity)
    slots = (positions * mask).sum(dim=1)
    weights = (gates * mask).sum(dim=1)
    combine = weights[:, None, None] * mask[:, :, None] * F.one_hot(slots, capacity)[:, None]
    return l_aux, combine, combine.bool(), exp_counts


class TopKGate(nn.Module):
    def __init__(self, dim, experts, capacity_factor=1.25, min_capacity=2):
        super().__init__()
        self.wg = nn.Linear(dim, experts, bias=False)
        self.capacity_factor, self.min_capacity = capacity_factor, min_capacity

    def forward(self, x):
        return top1_gating(self.wg(x), self.capacity_factor, self.min_capacity, self.training)


class MoELayer(nn.Module):
    def __init__(self, dim, experts):
        super().__init__()
        self.gate = TopKGate(dim, experts)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(experts))
        self.l_aux, self.exp_counts = None, None

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        self.l_aux, combine, dispatch, self.exp_counts = self.gate(flat)
        routed = torch.einsum("sec,sm->ecm", dispatch.to(flat.dtype), flat)
        outs = torch.stack([e(chunk) for e, chunk in zip(self.experts, routed)])
        return torch.einsum("sec,ecm->sm", combine, outs).reshape(x.shape)


class MoEBlock(nn.Module):
    def __init__(self, dim=12, experts=4):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.moe = MoELayer(dim, experts)

    def forward(self, x):
        return x + self.moe(self.norm(x))


def report(block):
    counts = block.moe.exp_counts.cpu()
    return {f"expert_{i}": int(c) for i, c in enumerate(counts)}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    block = MoEBlock().to(device).eval()
    with torch.no_grad():
        block(torch.randn(2, 8, 12, device=device))
    print(report(block))
    block.train()
    optimizer = torch.optim.SGD(block.parameters(), lr=0.1)
    loss = block(torch.randn(2, 8, 12, device=device)).pow(2).mean() + 0.01 * block.moe.l_aux
    loss.backward()
    optimizer.step()
    print(report(block), loss.item())


if __name__ == "__main__":
    main()
