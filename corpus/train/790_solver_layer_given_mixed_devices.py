# source: cvxpy/cvxpylayers#1
# mechanism: [custom autograd Function] solver Function takes one parameter on CUDA and one on the CPU, works on the host, and sends every gradient to the device of the first
# phase: backward; failing op: autograd validate_outputs ('returned an invalid gradient at index 1 - expected device cpu but got cuda:0')
# expect: raises
import torch

dev = torch.device("cuda", 0)


class LeastSquares(torch.autograd.Function):
    @staticmethod
    def forward(ctx, A, b):
        ctx.device = A.device
        ctx.inverse = torch.linalg.pinv(A.detach().cpu())
        ctx.solution = ctx.inverse @ b.detach().cpu()
        return ctx.solution.to(ctx.device)

    @staticmethod
    def backward(ctx, g):
        db = ctx.inverse.t() @ g.cpu()
        dA = -db[:, None] * ctx.solution[None, :]
        return dA.to(ctx.device), db.to(ctx.device)

A = torch.randn(3, 2, device=dev, requires_grad=True)
b = torch.randn(3, requires_grad=True)  # ROOT
solution = LeastSquares.apply(A, b)  # ALSO
solution.sum().backward()  # RAISE
