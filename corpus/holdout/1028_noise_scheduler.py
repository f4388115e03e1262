# source: explainingai-code/DDPM-Pytorch#5
# mechanism: the noise schedule tables live on the host and are indexed with time steps that were drawn on the GPU
# expect: raises
import torch
from torch import nn


class LinearNoiseScheduler:
    def __init__(self, num_timesteps, beta_start, beta_end):
        self.num_timesteps = num_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_timesteps)  # ALSO
        self.alphas = 1.0 - self.betas  # ALSO
        self.alpha_cum_prod = self.alphas.cumprod(0)  # ALSO
        self.signal = self.alpha_cum_prod.sqrt()
        self.spread = (1.0 - self.alpha_cum_prod).sqrt()

    @staticmethod
    def extract(table, t, like):
        values = table[t]  # RAISE # ROOT
        return values.to(like.device).reshape(-1, *([1] * (like.dim() - 1)))

    def add_noise(self, original, noise, t):
        return self.extract(self.signal, t, original) * original + self.extract(self.spread, t, original) * noise

    def estimate(self, noisy, predicted, t):
        clean = (noisy - self.extract(self.spread, t, noisy) * predicted) / self.extract(self.signal, t, noisy)
        return clean.clamp(-1, 1)


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.proj = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, t):
        rates = torch.exp(-torch.arange(self.dim // 2, device=t.device) / (self.dim // 2) * 4.0)
        angles = t[:, None].float() * rates[None]
        return self.proj(torch.cat([angles.sin(), angles.cos()], dim=-1))


class SmallUnet(nn.Module):
    def __init__(self, channels=8, dim=8):
        super().__init__()
        self.time = TimeEmbedding(dim)
        self.down = nn.Conv2d(1, channels, 3, stride=2, padding=1)
        self.mid = nn.Conv2d(channels, channels, 3, padding=1)
        self.up = nn.ConvTranspose2d(channels, 1, 2, stride=2)

    def forward(self, x, t):
        hidden = torch.relu(self.down(x) + self.time(t)[:, :, None, None])
        return self.up(torch.relu(self.mid(hidden)))


class DiffusionTrainer:
    def __init__(self, config, device):
        self.config = config
        self.device = device
        self.scheduler = LinearNoiseScheduler(**config["schedule"])
        self.model = SmallUnet().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])

    def draw_steps(self, count):
        return torch.randint(0, self.scheduler.num_timesteps, (count,), device=self.device)

    def training_step(self, images):
        images = images.to(self.device)
        noise = torch.randn_like(images)
        t = self.draw_steps(len(images))
        noisy = self.scheduler.add_noise(images, noise, t)
        predicted = self.model(noisy, t)
        loss = (predicted - noise).pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item(), self.scheduler.estimate(noisy, predicted.detach(), t).abs().mean().item()


def main():
    torch.manual_seed(0)
    config = {"schedule": {"num_timesteps": 50, "beta_start": 1e-4, "beta_end": 0.02}, "lr": 1e-3}
    trainer = DiffusionTrainer(config, torch.device("cuda"))
    for _ in range(3):
        print(trainer.training_step(torch.rand(4, 1, 8, 8) * 2 - 1))


if __name__ == "__main__":
    main()
