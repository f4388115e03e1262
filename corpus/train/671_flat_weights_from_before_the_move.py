# source: DiffEqML/torchdyn#116
# mechanism: [stale copy of parameters] the flat vector of weights that an adjoint Function differentiates is gathered when the layer is built; .to() moves the field's weights, not the vector
# phase: backward; failing op: autograd validate_outputs (invalid gradient, expected device cpu but got cuda:0)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda:0")


class Integrate(torch.autograd.Function):
    @staticmethod
    def forward(ctx, flat, start, field, steps):
        ctx.field, ctx.steps = field, steps
        state = start
        for _ in range(steps):
            state = state + field(state) / steps
        ctx.save_for_backward(start)
        return state

    @staticmethod
    def backward(ctx, outer):
        start, = ctx.saved_tensors
        weights = list(ctx.field.parameters())
        with torch.enable_grad():
            begin = start.detach().requires_grad_()
            state = begin
            for _ in range(ctx.steps):
                state = state + ctx.field(state) / ctx.steps
            g_start, *g_weights = torch.autograd.grad(state, [begin, *weights], outer)
        return torch.cat([g.flatten() for g in g_weights]), g_start, None, None


class FlowLayer(nn.Module):
    def __init__(self, field, steps=4):
        super().__init__()
        self.field, self.steps = field, steps
        self.flat = torch.cat([p.flatten() for p in field.parameters()])  # ROOT

    def forward(self, start):
        return Integrate.apply(self.flat, start, self.field, self.steps)  # ALSO


layer = FlowLayer(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 3))).to(dev)  # ALSO
end = layer(torch.randn(10, 3, device=dev))
energy = end.square().sum(1).mean()
energy.backward()  # RAISE
