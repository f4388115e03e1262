# source: hao-ai-lab/FastVideo PR#1687
# mechanism: [index tensor] position counter of the key cache is a CUDA tensor; slicing with it makes Python read it on the host, once for each layer and step
# phase: denoising loop; failing op: Tensor.__setitem__ with a slice of CUDA tensors
# expect: silent
# kinds: implicit-sync
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Cache:
    def __init__(self, limit, dim):
        self.k = torch.zeros(limit, dim, device=dev)
        self.pos = torch.arange(limit, device=dev)
        self.end = torch.zeros(1, dtype=torch.long, device=dev)  # ROOT

    def push(self, k):
        stop = self.end + len(k)
        self.k[self.end:stop] = k  # RAISE
        self.end = stop
        return self.k, self.pos < stop

def attend(x, cache):
    k, seen = cache.push(x)
    s = (x @ k.t()).masked_fill(~seen, float("-inf"))
    return x + s.softmax(-1) @ k

caches = [Cache(8, 4) for _ in range(2)]
for _ in range(3):
    x = torch.randn(2, 4, device=dev)
    for c in caches:
        x = attend(x, c)
