# source: pytorch/pytorch#172798
# mechanism: a custom backward makes a constant under the caller's `with torch.device()`, which its thread has not
# phase: backward; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class RoundWithSlope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, levels):
        ctx.save_for_backward(x)
        ctx.levels = levels
        return (x * levels).round() / levels

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        steps = torch.linspace(-1.0, 1.0, 2 * ctx.levels + 1)  # ROOT
        nearest = (x.unsqueeze(-1) - steps).abs().amin(-1)  # RAISE  # ALSO
        return grad * (1 - nearest), None


class Quantized(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner, self.outer = torch.nn.Linear(width, width), torch.nn.Linear(width, 1)

    def forward(self, x):
        return self.outer(RoundWithSlope.apply(self.inner(x).tanh(), 4))


with torch.device(dev):
    model = Quantized(4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        loss = model(torch.randn(6, 4)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
