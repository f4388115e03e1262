# source: clean control, must not be reported
# mechanism: none; a custom Function that computes on the host returns both its value and its gradient to the input's device, and offload hooks bring weights and inputs together before and park the weights after
# phase: n/a
# expect: clean
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class HostSort(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        vals, idx = x.detach().cpu().sort()
        ctx.idx, ctx.where = idx, x.device
        return vals.to(x.device)

    @staticmethod
    def backward(ctx, g):
        out = torch.zeros(ctx.idx.shape)
        out.scatter_(-1, ctx.idx, g.cpu())
        return out.to(ctx.where)

def bring(mod, args):
    mod.to(dev)
    return tuple(a.to(dev) for a in args)

def park(mod, args, out):
    mod.to("cpu")
    return out

blocks = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 2))
for b in blocks:
    b.register_forward_pre_hook(bring)
    b.register_forward_hook(park)
with torch.no_grad():
    y = blocks(torch.randn(3, 4))
x = torch.randn(3, 4, device=dev, requires_grad=True)
(HostSort.apply(x) * torch.arange(4.0, device=dev)).sum().backward()
x.data.add_(x.grad)
