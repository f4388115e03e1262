# source: huggingface/accelerate PR#1969, #1888 (force_hooks); PR#1648
# mechanism: [model-parallel hook] dispatch adds the input-aligning hooks only when the device map names several devices; the caller relies on them
# phase: forward; failing op: aten::linear / addmm
# expect: raises
# root: big_modeling.py:dispatch_model: hooks attached only if len(set(device_map.values())) > 1
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def align(mod, args):
    return tuple(a.to(mod.weight.device) for a in args)

def dispatch(model, device_map):
    for name, m in model.named_children():
        m.to(device_map[name])
    if len(set(device_map.values())) > 1:  # ROOT
        for m in model.children():
            m.register_forward_pre_hook(align)

net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 1))
dispatch(net, {"0": dev, "1": dev})
net(torch.ones(2, 3))  # RAISE  # ALSO
