# source: lucidrains/ema-pytorch#31
# mechanism: the averaged model is a copy of a model on the GPU, but the step count from which its decay is computed is a buffer made on the CPU
# expect: raises
import copy
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TrainConfig:
    dim: int = 8
    steps: int = 4
    batch_size: int = 6
    gamma: float = 5.3
    lr: float = 1e-2


def pick_device():
    return torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class Denoiser(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim + 1, 16), nn.SiLU(), nn.Linear(16, dim))
        self.register_buffer("sigma_data", torch.tensor(0.5))

    def forward(self, x, sigma):
        scale = 1.0 / (sigma ** 2 + self.sigma_data ** 2).sqrt()
        return self.net(torch.cat([x * scale, sigma.log()], dim=1))


class PowerEMA(nn.Module):
    def __init__(self, model, gamma, update_every=1):
        super().__init__()
        self.gamma = gamma
        self.update_every = update_every
        self.online = [model]
        self.averaged = copy.deepcopy(model).requires_grad_(False)
        self.register_buffer("step", torch.zeros(1))  # ALSO

    def current_decay(self):
        return (1.0 - 1.0 / (self.step + 1.0)) ** (1.0 + self.gamma)  # ALSO

    @torch.no_grad()
    def update(self):
        self.step += 1
        if int(self.step.item()) % self.update_every:
            return
        self.update_moving_average()

    def update_moving_average(self):
        decay = self.current_decay()  # ROOT
        for avg, cur in zip(self.averaged.parameters(), self.online[0].parameters()):
            avg.mul_(decay).add_(cur.detach() * (1.0 - decay))  # RAISE # ALSO
        for avg, cur in zip(self.averaged.buffers(), self.online[0].buffers()):
            avg.copy_(cur)


class Trainer:
    def __init__(self, cfg, device):
        self.cfg = cfg
        self.device = device
        self.model = Denoiser(cfg.dim).to(device)
        self.ema = PowerEMA(self.model, cfg.gamma)  # ALSO
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=cfg.lr)

    def sample_batch(self):
        x = torch.randn(self.cfg.batch_size, self.cfg.dim, device=self.device)
        sigma = torch.rand(self.cfg.batch_size, 1, device=self.device) + 0.1
        return x, sigma

    def step(self):
        x, sigma = self.sample_batch()
        noisy = x + sigma * torch.randn_like(x)
        loss = ((self.model(noisy, sigma) - x) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.ema.update()
        return loss.item()


def main():
    torch.manual_seed(0)
    cfg = TrainConfig()
    trainer = Trainer(cfg, pick_device())
    losses = [trainer.step() for _ in range(cfg.steps)]
    print("loss %.4f" % losses[-1])


if __name__ == "__main__":
    main()
