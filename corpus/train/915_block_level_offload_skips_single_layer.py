# source: huggingface/diffusers PR#12692, #12319 ('only matched ModuleList and Sequential containers, leaving standalone layers unmanaged')
# mechanism: [model-parallel hook] onload hooks are given to members of block lists only; a single layer beside them stays on the CPU
# phase: forward; failing op: aten::conv2d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
# root: group_offloading.py: children that are no ModuleList/Sequential get no group
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.post_quant = nn.Conv2d(2, 2, 1)
        self.blocks = nn.ModuleList([nn.Conv2d(2, 2, 1) for _ in range(2)])

    def forward(self, z):
        return self.blocks[1](self.blocks[0](self.post_quant(z)))  # RAISE

vae = Decoder()
for child in vae.children():
    if isinstance(child, (nn.ModuleList, nn.Sequential)):  # ROOT
        for m in child:
            m.register_forward_pre_hook(lambda mod, args: mod.to(dev) and None)
vae(torch.ones(1, 2, 4, 4, device=dev))
