# source: https://github.com/ROCm/pytorch/issues/3194
# expect: silent
# kinds: async-race
# A prefetcher copies on a stream of its own, and the default stream computes with the batch without waiting for it.
import torch

device = torch.device("cuda", 0)


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.stream = torch.cuda.Stream()

    def next(self):
        with torch.cuda.stream(self.stream):
            return next(self.batches).to(device, non_blocking=True)  # ROOT


weights = torch.randn(8, 2, device=device)
prefetcher = Prefetcher([torch.randn(4, 8).pin_memory() for _ in range(2)])
batch = prefetcher.next()
scores = batch @ weights  # RAISE
