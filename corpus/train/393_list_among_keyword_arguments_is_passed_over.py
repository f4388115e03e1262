# source: huggingface/accelerate#1254
# mechanism: a wrapper moves the tensors among its keyword arguments, and lists of tensors come through as they are
# phase: forward; aten::add.Tensor
# expect: raises
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 8)

    def forward(self, x, mask=None, skips=()):
        y = self.project(x) * mask
        for skip in skips:
            y = y + skip  # RAISE
        return y


class Placed:
    def __init__(self, module, device):
        self.module, self.device = module.to(device), device

    def __call__(self, *args, **kwargs):
        args = [a.to(self.device) for a in args]
        kwargs = {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in kwargs.items()}  # ROOT
        return self.module(*args, **kwargs)


decode = Placed(Decoder(), "cuda")
features = [torch.rand(2, 8) for _ in range(3)]
decode(torch.rand(2, 8), mask=torch.ones(2, 8), skips=features)
