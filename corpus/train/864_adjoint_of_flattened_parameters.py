# source: DiffEqML/torchdyn#116 (NeuralODE adjoint incompatible with PyTorch Lightning gpus)
# mechanism: [custom autograd Function] adjoint Function gets all parameters of the vector field as one flat tensor, made at construction; the module moves afterwards, the flat tensor does not, and backward joins its adjoint to the state's
# phase: backward; failing op: aten::cat (cuda state adjoint, cpu parameter adjoint)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Adjoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flat, x, field, steps):
        ctx.field, ctx.steps = field, steps
        with torch.no_grad():
            for _ in range(steps):
                x = x + field(x) / steps
        ctx.save_for_backward(flat, x)
        return x

    @staticmethod
    def backward(ctx, g):
        flat, x = ctx.saved_tensors
        field, steps = ctx.field, ctx.steps
        state = torch.cat([g.flatten(), torch.zeros_like(flat)])  # RAISE
        for _ in range(steps):
            lam = state[:x.numel()].view_as(x)
            with torch.enable_grad():
                x = x.detach().requires_grad_()
                dx, *dp = torch.autograd.grad(field(x), (x, *field.parameters()), lam)
                state = state + torch.cat([dx.flatten(), *(d.flatten() for d in dp)]) / steps
                x = x - field(x) / steps
        return state[x.numel():], state[:x.numel()].view_as(x), None, None

class NeuralODE(nn.Module):
    def __init__(self, field):
        super().__init__()
        self.field = field
        self.flat = torch.cat([p.flatten() for p in field.parameters()])  # ROOT

    def forward(self, x):
        return Adjoint.apply(self.flat, x, self.field, 4)  # ALSO

model = NeuralODE(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))).to(dev)  # ALSO
model(torch.randn(5, 3, device=dev)).square().mean().backward()
