# source: https://github.com/huggingface/transformers/issues/25104
# mechanism: a module keeps its buffer under a second name and puts that one back; a move in between gave the buffer a new tensor
# phase: forward; aten::div
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class RunningScale(nn.Module):
    def __init__(self, momentum=0.9):
        super().__init__()
        self.momentum = momentum
        self.register_buffer("scale", torch.ones(4))
        self.initial_scale = self.scale  # ALSO

    def reset(self):
        self.scale = self.initial_scale  # ROOT

    def forward(self, x):
        if self.training:
            self.scale = self.momentum * self.scale + (1 - self.momentum) * x.detach().abs().amax(0)
        return x / self.scale  # RAISE


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.normalize, self.last = nn.Linear(3, 4), RunningScale(), nn.Linear(4, 2)

    def forward(self, x):
        return self.last(self.normalize(self.first(x)))


def train(model, epochs):
    for _ in range(epochs):
        for _ in range(2):
            model(torch.randn(5, 3, device=dev)).sum().backward()
        model.normalize.reset()
        model.eval()
        with torch.no_grad():
            model(torch.randn(5, 3, device=dev))
        model.train()


train(Net().to(dev), epochs=2)
