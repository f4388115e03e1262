# source: ModelCloud/GPTQModel PR#2979 (#2115)
# mechanism: [model-parallel hook] calibration runs replicas of a layer on several GPUs; their forward hooks all add to one Hessian that lives on the layer's device
# phase: calibration; failing op: aten::add_ (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
# root: qqq.py:__init__: self.H = torch.zeros(..., device=self.dev) (fix: one partial per device)
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


layer = nn.Linear(3, 3).to(dev)
H = torch.zeros(3, 3, device=layer.weight.device)  # ROOT
def add_batch(mod, args, out):
    H.add_(args[0].t() @ args[0])  # RAISE  # ALSO

for m in (layer, copy.deepcopy(layer).to('cuda:1')):
    m.register_forward_hook(add_batch)
    m(torch.ones(2, 3, device=m.weight.device))
