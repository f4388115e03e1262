# source: bitsandbytes-foundation/bitsandbytes#1527
# mechanism: an object that a module keeps is moved by the module's _apply(), and forgets one of its tensors
# phase: forward; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Blocks:
    def __init__(self, weight, size):
        rows = weight.detach().reshape(-1, size)
        self.spread = rows.abs().amax(1, keepdim=True)
        self.steps = torch.linspace(-1, 1, 16)
        self.codes = (rows / self.spread).unsqueeze(-1).sub(self.steps).abs().argmin(-1)

    def moved(self, through):
        self.codes, self.spread = through(self.codes), through(self.spread)  # ROOT

    def unpacked(self, shape):
        return (self.steps.take(self.codes.cpu()) * self.spread).reshape(shape)  # RAISE  # ALSO


class Packed(torch.nn.Module):
    def __init__(self, linear):
        super().__init__()
        self.shape, self.blocks = linear.weight.shape, Blocks(linear.weight, size=4)
        self.bias = torch.nn.Parameter(linear.bias.detach().clone())

    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.blocks.moved(fn)
        return self

    def forward(self, x):
        return torch.nn.functional.linear(x, self.blocks.unpacked(self.shape), self.bias)


model = torch.nn.Sequential(Packed(torch.nn.Linear(8, 8)), torch.nn.Tanh(), Packed(torch.nn.Linear(8, 4))).to(dev)
model(torch.randn(2, 8, device=dev))
