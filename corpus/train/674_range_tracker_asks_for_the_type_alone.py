# source: pytorch/pytorch#46533
# mechanism: [current device] helper reduces a tensor's device to the string "cuda", which means the current GPU, while the observer sits on the other one
# phase: evaluation (calibration of a quantized layer); failing op: aten::maximum (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 1)


class RangeTracker(nn.Module):
    def __init__(self, bits=8, eps=1e-6):
        super().__init__()
        self.levels, self.eps = 2 ** bits - 1, eps
        self.register_buffer("low", torch.zeros(1))
        self.register_buffer("high", torch.zeros(1))

    def forward(self, x):
        self.low.copy_(torch.minimum(self.low, x.detach().amin()))
        self.high.copy_(torch.maximum(self.high, x.detach().amax()))
        return x

    def step_size(self):
        where = "cuda" if self.low.is_cuda else "cpu"  # ROOT
        smallest = torch.tensor(self.eps, device=where)  # ALSO
        width = (self.high - self.low) / self.levels
        return torch.max(width, smallest)  # RAISE  # ALSO


class Observed(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.tracker = nn.Linear(4, 4), RangeTracker()

    def forward(self, x):
        return self.tracker(self.body(x))


model = Observed().to(dev).eval()
with torch.no_grad():
    for _ in range(3):
        model(torch.randn(8, 4, device=dev))
steps = {name: m.step_size() for name, m in model.named_modules() if isinstance(m, RangeTracker)}
