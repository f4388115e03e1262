# source: https://github.com/pytorch/pytorch/issues/86264
# expect: silent
# kinds: async-race
# NumPy reads the pinned target of a copy that nobody waited for.
import torch

device = torch.device("cuda", 0)
logits = torch.randn(64, 10, device=device)
host = logits.softmax(-1).to("cpu", non_blocking=True)  # ROOT
best = host.numpy().argmax(axis=1)  # RAISE
