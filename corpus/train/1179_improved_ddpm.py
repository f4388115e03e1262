# source: open-mmlab/mmgeneration#476
# mechanism: schedule values that are kept as host lists become a CPU tensor, which is indexed with timesteps on the GPU
# expect: raises
import math

import torch
from torch import nn


def cosine_beta_schedule(timesteps, max_beta=0.999):
    def alpha_bar(t):
        return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

    betas = []
    for i in range(timesteps):
        betas.append(min(1 - alpha_bar((i + 1) / timesteps) / alpha_bar(i / timesteps), max_beta))
    return betas


def var_to_tensor(var, index, target_shape=None, device=None):
    table = torch.tensor(var, dtype=torch.float64)  # ALSO
    var_indexed = table[index].float()  # RAISE # ROOT
    if device is not None:
        var_indexed = var_indexed.to(device)
    while target_shape is not None and var_indexed.dim() < len(target_shape):
        var_indexed = var_indexed[..., None]
    return var_indexed


class UniformTimeStepSampler:
    def __init__(self, num_timesteps):
        self.num_timesteps = num_timesteps

    def __call__(self, batch_size, device):
        return torch.randint(0, self.num_timesteps, (batch_size,), device=device)


class DenoisingUnet(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.inner = nn.Conv2d(3, width, 3, padding=1)
        self.embed = nn.Sequential(nn.Linear(1, width), nn.SiLU())
        self.outer = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        shift = self.embed(t[:, None].float() / 100)
        return self.outer((self.inner(x) + shift[..., None, None]).relu())


class BasicGaussianDiffusion(nn.Module):
    def __init__(self, num_timesteps=50):
        super().__init__()
        self.num_timesteps = num_timesteps
        self.denoising = DenoisingUnet()
        self.sampler = UniformTimeStepSampler(num_timesteps)
        self.prepare_diffusion_vars()

    def prepare_diffusion_vars(self):
        self.betas = cosine_beta_schedule(self.num_timesteps)
        product, self.alphas_bar = 1.0, []
        for beta in self.betas:
            product *= 1 - beta
            self.alphas_bar.append(product)
        self.sqrt_alphas_bar = [math.sqrt(a) for a in self.alphas_bar]
        self.sqrt_one_minus_alphas_bar = [math.sqrt(1 - a) for a in self.alphas_bar]

    def q_sample(self, x_0, t, noise):
        device = x_0.device
        mean = var_to_tensor(self.sqrt_alphas_bar, t, x_0.shape, device)
        std = var_to_tensor(self.sqrt_one_minus_alphas_bar, t, x_0.shape, device)
        return x_0 * mean + noise * std

    @torch.no_grad()
    def sample(self, shape, device, steps=5):
        x = torch.randn(shape, device=device)
        for i in reversed(range(0, self.num_timesteps, self.num_timesteps // steps)):
            t = torch.full((shape[0],), i, device=device)
            x = x - math.sqrt(self.betas[i]) * self.denoising(x, t)
        return x

    def train_step(self, data, optimizer):
        real = data["real_img"]
        t = self.sampler(len(real), real.device)
        noise = torch.randn_like(real)
        loss = nn.functional.mse_loss(self.denoising(self.q_sample(real, t, noise), t), noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return {"loss": loss.item()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = BasicGaussianDiffusion().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    print("before", tuple(model.sample((1, 3, 8, 8), device).shape))
    for iteration in range(3):
        data = {"real_img": torch.rand(4, 3, 8, 8).to(device)}
        print(iteration, {k: round(v, 4) for k, v in model.train_step(data, optimizer).items()})


if __name__ == "__main__":
    main()
