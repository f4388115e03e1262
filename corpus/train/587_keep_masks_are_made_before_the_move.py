# source: own
# mechanism: masks of a sparse network are computed from its weights, in several lines, before it is moved
# phase: first step; failing op: aten::mul
# expect: raises
import torch
from torch import nn


def keep_masks(net, share):
    masks = []
    for weight in (layer.weight for layer in net if isinstance(layer, nn.Linear)):
        size = weight.detach().square()
        limit = size.flatten().kthvalue(max(1, int(share * size.numel()))).values
        masks.append((size > limit).to(size.dtype))  # ROOT
    return masks


def sparse_step(net, masks, x):
    for layer, mask in zip((net[0], net[2]), masks):
        layer.weight.data = layer.weight.data * mask  # RAISE  # ALSO
    net(x).sum().backward()


net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
masks = keep_masks(net, share=0.3)  # ALSO
net.cuda()  # ALSO
sparse_step(net, masks, torch.randn(2, 3, device="cuda"))
