# source: sgl-project/sglang PR#27440
# mechanism: scalars of the device are collected in a list, of which a tensor is made
# phase: inference; torch.tensor
# expect: silent
# kinds: implicit-sync
import torch
from torch import nn


def longest_runs(lengths, per_clip):
    return [chunk.max() for chunk in lengths.split(per_clip)]


class ClipPooler(nn.Module):
    def __init__(self, width, limit):
        super().__init__()
        self.scale = nn.Embedding(limit, width)

    def forward(self, frames, lengths, per_clip):
        runs = longest_runs(lengths, per_clip)
        steps = torch.tensor(runs, device=frames.device)  # ROOT  # RAISE
        pooled = torch.stack([clip.mean(0) for clip in frames.split(per_clip)])
        return pooled * self.scale(steps)


pooler = ClipPooler(8, 16).to("cuda:0").eval()
lengths = torch.randint(16, (6,), device="cuda:0")
with torch.no_grad():
    for _ in range(3):
        frames = torch.randn(6, 8, device="cuda:0")
        pooled = pooler(frames, lengths, [2, 3, 1])
print(pooled.shape)
