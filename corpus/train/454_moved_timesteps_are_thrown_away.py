# source: huggingface/accelerate#2251
# mechanism: drawn timesteps are moved and the result is dropped; a table is made where they are and meets the data
# phase: training; aten::mul
# expect: raises
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class LossAwareSampler:
    def __init__(self, steps):
        self.weights = np.ones(steps)

    def sample(self, count):
        chances = self.weights / self.weights.sum()
        return torch.from_numpy(np.random.choice(len(chances), size=count, p=chances))

    def update(self, t, losses):
        for step, loss in zip(t.tolist(), losses.tolist()):
            self.weights[step] = 0.9 * self.weights[step] + 0.1 * loss


def kept_share(t, steps):
    betas = torch.linspace(1e-4, 2e-2, steps, dtype=torch.float32, device=t.device)
    table = torch.cumprod(1 - betas, dim=0)
    return table[t].view(-1, 1)


class Denoiser(nn.Module):
    def __init__(self, size, steps):
        super().__init__()
        self.moment = nn.Embedding(steps, 8)
        self.net = nn.Sequential(nn.Linear(size + 8, 32), nn.SiLU(), nn.Linear(32, size))

    def forward(self, x, t):
        return self.net(torch.cat([x, self.moment(t)], dim=1))


def diffuse(x, t, noise, steps):
    kept = kept_share(t, steps)
    return kept.sqrt() * x + (1 - kept).sqrt() * noise  # RAISE


def main(steps=50, size=6, device="cuda"):
    sampler, model = LossAwareSampler(steps), Denoiser(size, steps).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(3):
        x = torch.randn(12, size, device=device)
        t = sampler.sample(len(x))  # ALSO
        t.to(device)  # ROOT
        noise = torch.randn_like(x)
        losses = F.mse_loss(model(diffuse(x, t, noise, steps), t), noise, reduction="none").mean(1)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        sampler.update(t, losses.detach())


main()
