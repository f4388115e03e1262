# source: pytorch/audio PR#1532
# mechanism: [custom autograd Function] loss Function returns per-sample costs on the host and keeps the gradients on the GPU; backward multiplies the two
# phase: backward; failing op: aten::mul (inside Function.backward)
# expect: raises
# root: _NumpyTransducer.backward: grad_output not brought to ctx.grads
import torch

dev = torch.device('cuda', 0)


class Transducer(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.grads = x.detach() * 2
        return x.detach().cpu().square().sum((1, 2))  # ALSO

    @staticmethod
    def backward(ctx, grad_output):
        grad_output = grad_output.view(-1, 1, 1)  # ROOT
        return ctx.grads.mul(grad_output)  # RAISE  # ALSO

x = torch.randn(2, 3, 4, device=dev, requires_grad=True)
Transducer.apply(x).sum().backward()
