# source: https://github.com/ROCm/pytorch/issues/3194
# expect: silent
# kinds: async-race
# A snapshot of the weights is copied on a side stream, and the next step changes them meanwhile.
import torch

device = torch.device("cuda", 0)
weights = torch.randn(32, device=device)
snapshot = torch.empty(32, pin_memory=True)
side = torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    snapshot.copy_(weights, non_blocking=True)  # ROOT
weights.mul_(0.9)  # RAISE
side.synchronize()
