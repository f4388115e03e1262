# source: huggingface/peft#2163 (pull request, FIX VeRA failure on multiple GPUs)
# mechanism: [shared module tree] one frozen pair of random matrices is shared by the adapters of all layers, and layers stand on two GPUs; the pair can only be on one of them
# phase: forward; failing op: aten::linear / addmm (cuda:1 x cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F


class ProjectionBank(nn.Module):
    def __init__(self, rank, widest_in, widest_out):
        super().__init__()
        self.register_buffer("reduce", torch.randn(rank, widest_in) / widest_in ** 0.5, persistent=False)
        self.register_buffer("expand", torch.randn(widest_out, rank) / rank ** 0.5, persistent=False)


class VectorAdapter(nn.Module):
    def __init__(self, base, bank):
        super().__init__()
        self.base, self.bank = base, bank
        self.gate_in = nn.Parameter(torch.full((bank.reduce.shape[0],), 0.1, device=base.weight.device))
        self.gate_out = nn.Parameter(torch.zeros(base.out_features, device=base.weight.device))

    def forward(self, x):
        x = x.to(self.base.weight.device)
        reduce = self.bank.reduce[:, :self.base.in_features]  # ROOT
        low = self.gate_in * F.linear(x, reduce)  # RAISE  # ALSO
        expand = self.bank.expand[:self.base.out_features].to(x.device)
        return self.base(x) + self.gate_out * F.linear(low, expand)


def spread(sizes, gpus):
    return nn.ModuleList(nn.Linear(a, b).to(f"cuda:{g}") for (a, b), g in zip(sizes, gpus))


decoder = spread([(8, 12), (12, 6), (6, 8)], [0, 0, 1])
bank = ProjectionBank(4, 12, 12).to(decoder[0].weight.device)
for i, layer in enumerate(decoder):
    decoder[i] = VectorAdapter(layer, bank)

hidden = torch.randn(2, 5, 8, device="cuda:0")
for layer in decoder:
    hidden = layer(hidden).relu()
hidden.mean().backward()
