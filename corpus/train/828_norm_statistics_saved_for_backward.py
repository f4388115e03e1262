# source: state-spaces/mamba PR#103
# mechanism: [custom autograd Function] layer norm Function allocates its row statistics on 'cuda', the current device, fills them by copy, and reads them in backward on a layer that lives on another GPU
# phase: backward; failing op: aten::sub (cuda:1 input, cuda:0 mean)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class LayerNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, eps):
        stats = torch.empty(2, x.shape[0], dtype=torch.float32, device="cuda")  # ROOT
        mean, rstd = x.mean(-1), (x.var(-1, unbiased=False) + eps).rsqrt()
        stats[0].copy_(mean), stats[1].copy_(rstd)
        ctx.save_for_backward(x, weight, stats)
        return (x - mean[:, None]) * rstd[:, None] * weight

    @staticmethod
    def backward(ctx, dy):
        x, weight, stats = ctx.saved_tensors
        mean, rstd = stats.unbind()
        xhat = (x - mean[:, None]) * rstd[:, None]  # RAISE
        wdy = dy * weight
        c1, c2 = (xhat * wdy).mean(-1, keepdim=True), wdy.mean(-1, keepdim=True)
        return (wdy - xhat * c1 - c2) * rstd[:, None], (dy * xhat).sum(0), None

class Norm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(n))

    def forward(self, x):
        return LayerNormFn.apply(x, self.weight, 1e-5)

first, second = nn.Linear(4, 4).to(dev), Norm(4).to(d1)
out = second(first(torch.randn(3, 4, device=dev)).to(d1))
out.pow(2).sum().backward()
