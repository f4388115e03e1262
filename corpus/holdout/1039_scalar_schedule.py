# source: own program
# mechanism: zero-dimensional host tensors (temperature, loss weights, counters) take part in arithmetic with GPU tensors, which PyTorch allows
# expect: clean
import torch
from torch import nn


class AnnealedValue:
    def __init__(self, start, end, steps):
        self.values = torch.linspace(start, end, steps)
        self.index = 0

    def current(self):
        return self.values[min(self.index, len(self.values) - 1)]

    def advance(self):
        self.index += 1


class RunningLoss:
    def __init__(self):
        self.total = torch.zeros(())
        self.count = 0

    def update(self, value):
        self.total = self.total + value.detach().cpu()
        self.count += 1

    def mean(self):
        return (self.total / max(self.count, 1)).item()


class SoftQuantizer(nn.Module):
    def __init__(self, codes=6, dim=4):
        super().__init__()
        self.codebook = nn.Parameter(torch.randn(codes, dim))

    def forward(self, x, temperature):
        logits = -torch.cdist(x, self.codebook) / temperature
        weights = logits.softmax(-1)
        return weights @ self.codebook, -(weights * weights.clamp(min=1e-8).log()).sum(-1).mean()


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 4), nn.Linear(4, 8)
        self.quantizer = SoftQuantizer()
        self.entropy_weight = torch.tensor(0.1)

    def forward(self, x, temperature):
        coded, entropy = self.quantizer(self.encoder(x), temperature)
        return (self.decoder(coded) - x).pow(2).mean() + self.entropy_weight * entropy


def train(steps=4):
    torch.manual_seed(0)
    model = Model().to("cuda")
    schedule, meter = AnnealedValue(2.0, 0.5, steps), RunningLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = model(torch.randn(10, 8, device="cuda"), schedule.current())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.advance()
        meter.update(loss)
    return meter.mean(), model.entropy_weight.device.type


if __name__ == "__main__":
    print(train())
