# source: DiffEqML/torchdyn#73, PR#74
# mechanism: [factory call without device=] output sequence is preallocated on the CPU; writing the steps into it copies across devices without an error, the read-out layer then gets it
# phase: forward; failing op: aten::linear / addmm
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class EulerFlow(nn.Module):
    def __init__(self, field, steps=4):
        super().__init__()
        self.field, self.steps = field, steps

    def forward(self, h):
        for _ in range(self.steps):
            h = h + self.field(h) / self.steps
        return h

class HybridNeuralDE(nn.Module):
    def __init__(self, features, hidden, reverse=False):
        super().__init__()
        self.flow = EulerFlow(nn.Sequential(nn.Linear(hidden, hidden), nn.Tanh()))
        self.jump = nn.LSTMCell(features, hidden)
        self.out = nn.Linear(hidden, 1)
        self.hidden, self.reverse = hidden, reverse

    def _init_latent(self, x):
        return torch.zeros(x.shape[1], self.hidden).to(x), torch.zeros(x.shape[1], self.hidden).to(x)

    def forward(self, x):
        h, c = self._init_latent(x)
        Y = torch.zeros(x.shape[0], *h.shape)  # ROOT
        if self.reverse:
            x = x.flip(0)
        for t, x_t in enumerate(x):
            h, c = self.jump(x_t, (h, c))
            h = self.flow(h)
            Y[t] = h
        return self.out(Y)  # RAISE

model = HybridNeuralDE(features=3, hidden=6, reverse=True).to(dev)
model(torch.randn(5, 2, 3, device=dev))
