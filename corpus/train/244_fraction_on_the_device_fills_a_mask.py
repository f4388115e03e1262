# source: https://github.com/pytorch/pytorch/issues/12461
# expect: silent
# kinds: implicit-sync
# A factory takes its fill value from the device, in every step.
import torch

device = torch.device("cuda", 0)
weights = torch.randn(32, device=device)
for _ in range(3):
    level = weights.abs().mean()  # ROOT
    floor = torch.full((32,), level, device=device)  # RAISE
    weights = torch.maximum(weights, floor)
