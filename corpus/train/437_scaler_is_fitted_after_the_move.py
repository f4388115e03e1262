# source: none; observations are normalized with statistics that a method sets when data is there
# mechanism: a method rebinds registered buffers by setattr() to tensors made on the CPU, long after the move
# phase: forward; aten::sub
# expect: raises
import numpy as np
import torch
from torch import nn


class Scaler(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("shift", torch.zeros(width))
        self.register_buffer("scale", torch.ones(width))

    def adapt(self, rows):
        found = {"shift": rows.mean(0), "scale": rows.std(0) + 1e-3}
        for name, values in found.items():
            setattr(self, name, torch.as_tensor(values, dtype=torch.float32))  # ROOT

    def forward(self, x):
        return (x - self.shift) / self.scale  # RAISE


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaler = Scaler(4)
        self.body = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))

    def forward(self, x):
        return self.body(self.scaler(x))


policy = Policy().to("cuda")
x = torch.randn(6, 4, device="cuda")
print(policy(x).shape)
policy.scaler.adapt(np.random.rand(20, 4))
print(policy(x).shape)
