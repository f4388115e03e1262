# source: a near miss of programs 588 and 589
# mechanism: parameters and buffers are moved in two loops, and a property hands out what was stored once, rightly
# expect: clean
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self, features, device):
        super().__init__()
        self._device = torch.device("cpu")
        self.register_buffer("scale", torch.ones(features))
        self.linear = nn.Linear(features, 2)
        self.place(device)

    @property
    def device(self):
        return self._device

    def place(self, device):
        for weight in self.parameters():
            weight.data = weight.data.to(device)
        for buffer in self.buffers():
            buffer.data = buffer.data.to(device)
        self._device = torch.device(device)

    def forward(self, x):
        return self.linear(x * self.scale + torch.zeros(x.shape[-1], device=self.device))


head = Head(3, "cuda:0")
head(torch.randn(2, 3, device=head.device)).sum().backward()
