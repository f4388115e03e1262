# source: none; windows of sensor series come from a generator, and the loop moves what it takes out of them one by one
# mechanism: one part of a yielded batch is taken without moving it; a helper computes on and meets a mask of the GPU
# phase: training; aten::mul
# expect: raises
import random
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Window:
    readings: torch.Tensor
    counts: torch.Tensor


def windows(series, width, size):
    random.shuffle(series)
    for begin in range(0, len(series), size):
        chosen = series[begin:begin + size]
        readings = nn.utils.rnn.pad_sequence([s[:width] for s in chosen], batch_first=True)
        yield Window(readings, torch.tensor([min(len(s), width) for s in chosen]))


def normalized(values, mask):
    centre = values.mean(dim=1, keepdim=True)
    spread = (values - centre).abs().amax(dim=1, keepdim=True) + 1e-3
    scaled = (values - centre) / spread
    return scaled * mask  # RAISE


class Forecaster(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.memory = nn.GRU(1, hidden, batch_first=True)
        self.next = nn.Linear(hidden, 1)

    def forward(self, values):
        states, _ = self.memory(values.unsqueeze(-1))
        return self.next(states).squeeze(-1)


def train(model, series, gpu, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for window in windows(series, width=12, size=4):
            counts = window.counts.to(gpu)
            steps = window.readings.shape[1] - 1
            mask = torch.arange(steps, device=gpu) < counts.unsqueeze(1) - 1
            wanted = window.readings[:, 1:].to(gpu)
            inputs = window.readings[:, :-1]  # ROOT
            guess = model(normalized(inputs, mask))  # ALSO
            loss = ((guess - normalized(wanted, mask)) * mask).square().sum() / mask.sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(Forecaster().cuda(), [torch.randn(random.randint(6, 16)).cumsum(0) for _ in range(10)], gpu="cuda")
