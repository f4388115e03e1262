# source: https://discuss.pytorch.org/t/custom-autograd-function-with-dataparallel/24012
# mechanism: a custom function keeps what its backward needs on its class; the replica on the other GPU overwrites it
# phase: backward; autograd::validate_outputs
# expect: raises
# needs: 2 GPUs
import torch


class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Clip.inside = ((x > 0) & (x < 1)).to(x.dtype)  # ROOT
        return x.clamp(0, 1)

    @staticmethod
    def backward(ctx, gradient):
        return Clip.inside


x = torch.randn(4, 3, requires_grad=True, device="cuda:0")
parts = [part.to(device) for part, device in zip(x.chunk(2), ("cuda:0", "cuda:1"))]
clipped = [Clip.apply(part) for part in parts]
torch.cat([part.to("cuda:0") for part in clipped]).sum().backward()  # RAISE
