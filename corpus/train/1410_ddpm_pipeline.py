# source: mattroz/diffusion-ddpm#5
# mechanism: a scheduler that is no module is made without a device keeps betas and their products on the CPU, and looks them up with timesteps on the GPU before it moves the result
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class TrainingConfig:
    image_size: int = 8
    batch_size: int = 4
    num_timesteps: int = 50
    epochs: int = 2
    device: str = "cuda" if torch.cuda.is_available() else "cpu"


class DDPMScheduler:
    def __init__(self, num_timesteps, beta_start=1e-4, beta_end=2e-2, device="cpu"):
        self.num_timesteps = num_timesteps
        self.betas = torch.linspace(beta_start, beta_end, num_timesteps, device=device)
        self.alphas = 1 - self.betas
        self.alphas_hat = torch.cumprod(self.alphas, dim=0)

    def add_noise(self, images, noise, timesteps):
        alpha_hat = self.alphas_hat[timesteps].to(images.device)  # RAISE # ALSO
        alpha_hat = alpha_hat.view(-1, 1, 1, 1)
        return alpha_hat.sqrt() * images + (1 - alpha_hat).sqrt() * noise

    def step(self, x, eps, t):
        alpha, alpha_hat, beta = self.alphas[t], self.alphas_hat[t], self.betas[t]
        mean = (x - beta / (1 - alpha_hat).sqrt() * eps) / alpha.sqrt()
        return mean if t == 0 else mean + beta.sqrt() * torch.randn_like(x)


class TimeEmbedding(nn.Module):
    def __init__(self, dim, max_timesteps):
        super().__init__()
        pos = torch.arange(max_timesteps).float().unsqueeze(1)
        div = torch.exp(torch.arange(0, dim, 2).float() * -0.5)
        self.register_buffer("table", torch.cat([(pos * div).sin(), (pos * div).cos()], dim=1))

    def forward(self, timesteps):
        return self.table[timesteps]


class TinyUNet(nn.Module):
    def __init__(self, config, dim=8):
        super().__init__()
        self.embed = TimeEmbedding(dim, config.num_timesteps)
        self.inp = nn.Conv2d(3, dim, 3, padding=1)
        self.out = nn.Conv2d(dim, 3, 3, padding=1)

    def forward(self, x, timesteps):
        hidden = self.inp(x) + self.embed(timesteps)[:, :, None, None]
        return self.out(F.silu(hidden))


def train(config):
    model = TinyUNet(config).to(config.device)
    scheduler = DDPMScheduler(config.num_timesteps)  # ROOT
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    shape = (config.batch_size, 3, config.image_size, config.image_size)
    for _ in range(config.epochs):
        images = torch.rand(shape).to(config.device)
        noise = torch.randn_like(images)
        timesteps = torch.randint(0, config.num_timesteps, (shape[0],), device=config.device)
        noisy = scheduler.add_noise(images, noise, timesteps)
        loss = F.mse_loss(model(noisy, timesteps), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model, scheduler


@torch.no_grad()
def sample(model, scheduler, config):
    x = torch.randn(1, 3, config.image_size, config.image_size, device=config.device)
    for t in reversed(range(config.num_timesteps)):
        x = scheduler.step(x, model(x, torch.tensor([t], device=x.device)), t)
    return x.cpu()


if __name__ == "__main__":
    config = TrainingConfig()
    model, scheduler = train(config)
    print(sample(model, scheduler, config).std().item())
