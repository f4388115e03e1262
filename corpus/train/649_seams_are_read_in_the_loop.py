# source: sgl-project/sglang PR#27440
# mechanism: a loop goes over neighbours in a tensor of boundaries and cuts with them
# phase: inference; slice
# expect: silent
# kinds: implicit-sync
import torch
from torch import nn


class PackedAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)

    def forward(self, x, seams):
        qkv = self.qkv(x)
        outs = []
        for start, end in zip(seams[:-1], seams[1:]):  # ROOT
            q, k, v = qkv[start:end].chunk(3, dim=-1)  # RAISE
            scores = q @ k.t()
            outs.append(scores.softmax(-1) @ v)
        return torch.cat(outs)


class Quilt(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.layers = nn.ModuleList(PackedAttention(width) for _ in range(depth))

    def forward(self, patches, counts):
        seams = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        for layer in self.layers:
            patches = patches + layer(patches, seams)
        return patches


quilt = Quilt(8, 2).to("cuda:0").eval()
counts = torch.tensor([3, 5, 2], device="cuda:0")
with torch.no_grad():
    out = quilt(torch.randn(10, 8, device="cuda:0"), counts)
print(out.shape)
