# source: bigscience-workshop/petals PR#574
# mechanism: [model-parallel hook] block is served on its own GPU; the empty past handed in when there is no cache is made from a module constant on CPU
# phase: forward; failing op: aten::cat
# expect: raises
# needs: 2 GPUs
# root: DUMMY_KEY_PAST.to(dtype) without the device
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)

DUMMY_KEY_PAST = torch.empty(1, 0, 4)
def block(k, hidden, past):
    return torch.cat([past, k(hidden)], dim=1)  # RAISE

k = nn.Linear(4, 4).to(d1)
hidden = torch.randn(1, 3, 4, device=d1)
past = DUMMY_KEY_PAST.to(hidden.dtype)  # ROOT
keys = block(k, hidden, past)
