# source: finegrain-ai/refiners#85
# mechanism: a solver that overrides how timesteps are made leaves out the device that its base class gives them
# expect: raises
import math

import torch
from torch import nn


class Solver:
    def __init__(self, num_inference_steps, num_train_timesteps=100, device="cpu"):
        self.device = torch.device(device)
        self.num_inference_steps = num_inference_steps
        self.num_train_timesteps = num_train_timesteps
        betas = torch.linspace(1e-3, 2e-2, num_train_timesteps, device=self.device)
        alphas_cumprod = torch.cumprod(1 - betas, dim=0)
        self.scale_factors = alphas_cumprod.sqrt()
        self.noise_std = (1 - alphas_cumprod).sqrt()
        self.timesteps = self._generate_timesteps()  # ALSO

    def _generate_timesteps(self):
        stops = torch.linspace(self.num_train_timesteps - 1, 0, self.num_inference_steps, device=self.device)
        return stops.round().long()

    def add_noise(self, x, noise, step):
        t = self.timesteps[step]
        return self.scale_factors[t] * x + self.noise_std[t] * noise

    def remove_noise(self, x, noise, step):
        t = self.timesteps[step]
        return (x - self.noise_std[t] * noise) / self.scale_factors[t]

    def __call__(self, x, noise, step):
        raise NotImplementedError

    def rebuild(self, num_inference_steps):
        return type(self)(num_inference_steps, self.num_train_timesteps, self.device)


class Euler(Solver):
    def __call__(self, x, noise, step):
        if step + 1 >= self.num_inference_steps:
            return self.remove_noise(x, noise, step)
        return x - noise * (self.noise_std[self.timesteps[step]] - self.noise_std[self.timesteps[step + 1]])


class DDIM(Solver):
    def _generate_timesteps(self):
        ratio = self.num_train_timesteps // self.num_inference_steps
        steps = torch.arange(0, self.num_inference_steps)  # ROOT
        return (steps * ratio + 1).flip(0)  # ALSO

    def __call__(self, x, noise, step):
        predicted = self.remove_noise(x, noise, step)
        if step + 1 >= self.num_inference_steps:
            return predicted
        return self.add_noise(predicted, noise, step + 1)


class RangeEncoder(nn.Module):
    def __init__(self, dim, width):
        super().__init__()
        exponent = torch.arange(dim // 2).float() / (dim // 2)
        self.register_buffer("frequencies", torch.exp(-math.log(1000.0) * exponent))
        self.project = nn.Linear(dim, width)

    def forward(self, timestep):
        angles = timestep[:, None].float() * self.frequencies  # RAISE
        return self.project(torch.cat([angles.cos(), angles.sin()], dim=-1))


class LatentUNet(nn.Module):
    def __init__(self, channels=4, width=8):
        super().__init__()
        self.timestep = RangeEncoder(8, width)
        self.inner = nn.Conv2d(channels, width, 3, padding=1)
        self.outer = nn.Conv2d(width, channels, 3, padding=1)

    def forward(self, x, timestep):
        shift = self.timestep(timestep)[..., None, None]
        return self.outer((self.inner(x) + shift).relu())


class LatentDiffusionModel(nn.Module):
    def __init__(self, unet, solver, device):
        super().__init__()
        self.device = torch.device(device)
        self.unet = unet.to(self.device)
        self.solver = solver

    def set_inference_steps(self, steps):
        self.solver = self.solver.rebuild(steps)

    def forward(self, x, step):
        timestep = self.solver.timesteps[step].unsqueeze(0)  # ALSO
        noise = self.unet(x, timestep)  # ALSO
        return self.solver(x, noise, step)

    @torch.no_grad()
    def sample(self, shape, seed=0):
        gen = torch.Generator().manual_seed(seed)
        x = torch.randn(shape, generator=gen).to(self.device)
        for step in range(self.solver.num_inference_steps):
            x = self(x, step)
        return x.cpu()


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    for solver_type in (Euler, DDIM):
        model = LatentDiffusionModel(LatentUNet(), solver_type(10, device=device), device)
        model.set_inference_steps(4)
        print(solver_type.__name__, round(model.sample((1, 4, 6, 6)).std().item(), 4))


if __name__ == "__main__":
    main()
