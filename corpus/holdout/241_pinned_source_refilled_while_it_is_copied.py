# source: https://github.com/pytorch/pytorch/issues/126946, https://github.com/pytorch/pytorch/issues/127612
# expect: silent
# kinds: async-race
# One pinned staging buffer for all batches: the next batch is written over it while the last one is being copied.
import torch

device = torch.device("cuda", 0)


class Feeder:
    def __init__(self, batches):
        self.batches = batches
        self.staging = torch.empty(4, 8, pin_memory=True)

    def __iter__(self):
        for batch in self.batches:
            self.staging.copy_(batch)  # RAISE
            yield self.staging.to(device, non_blocking=True)  # ROOT


model = torch.nn.Linear(8, 2).to(device)
seen = [model(batch) for batch in Feeder([torch.randn(4, 8) for _ in range(3)])]
