# source: vllm-project/compressed-tensors PR#427 ('Explicitly move model to CPU when removing dispatch')
# mechanism: [model-parallel hook] removing the dispatch removes the hooks but leaves the weights on the devices they had been spread to
# phase: forward after calibration; failing op: aten::linear / addmm
# expect: raises
# needs: 2 GPUs
# root: offload.py:remove_dispatch: module not moved back
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
def align(mod, args):
    return tuple(a.to(mod.weight.device) for a in args)

net = nn.Sequential(nn.Linear(3, 3).to(dev), nn.Linear(3, 1).to(d1))
handles = [m.register_forward_pre_hook(align) for m in net]
sample = torch.ones(2, 3)
net(sample)
for h in handles:
    h.remove()  # ROOT
net(sample)  # RAISE
