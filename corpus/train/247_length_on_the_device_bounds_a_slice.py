# source: https://github.com/pytorch/pytorch/issues/12461
# expect: silent
# kinds: implicit-sync
# The longest sequence of the batch is found on the device and then used as a bound.
import torch

device = torch.device("cuda", 0)
tokens = torch.randint(0, 100, (4, 16), device=device)
lengths = torch.tensor([3, 9, 12, 5]).to(device)
longest = lengths.max()  # ROOT
tokens = tokens[:, :longest]  # RAISE
