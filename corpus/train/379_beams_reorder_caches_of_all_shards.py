# source: BlackSamorez/tensor_parallel PR#56
# mechanism: beam indices come from the last shard's GPU; a helper reorders the caches of every shard with them
# phase: generation; aten::index_select
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Shard(nn.Module):
    def __init__(self, width, device):
        super().__init__()
        self.project, self.device = nn.Linear(width, width), torch.device(device)
        self.to(device)

    def forward(self, x):
        keys = self.project(x.to(self.device))
        return x.to(self.device) + keys, keys


def chosen(keys, beams):
    return keys.index_select(0, beams)  # RAISE  # ALSO


class Decoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shards = nn.ModuleList([Shard(width, "cuda:0"), Shard(width, "cuda:1")])
        self.head = nn.Linear(width, 5).to("cuda:1")

    def forward(self, x):
        cache = []
        for shard in self.shards:
            x, keys = shard(x)
            cache.append(keys)
        return self.head(x), cache

    def reorder(self, cache, beams):
        return [chosen(keys, beams) for keys in cache]  # ROOT


decoder = Decoder(4)
with torch.no_grad():
    scores, cache = decoder(torch.randn(3, 4, device="cuda:0"))
    decoder.reorder(cache, scores.amax(-1).argsort(descending=True))
