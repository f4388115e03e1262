# source: https://github.com/pytorch/pytorch/issues/105641, https://github.com/microsoft/EASIER/pull/23
# expect: silent
# kinds: implicit-sync
# The step is chosen on the device, and selects a row of a table on the host.
import torch

device = torch.device("cuda", 0)
table = torch.linspace(0.0, 1.0, 50)


def noise_level(scores):
    best = scores.argmax()  # ROOT
    return table[best]  # RAISE


levels = [noise_level(torch.randn(50, device=device)) for _ in range(2)]
