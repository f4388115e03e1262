# source: ygtxr1997/CelebBasis#8
# mechanism: the log variance per timestep is a plain tensor attribute of a module and is looked up with timesteps on the GPU
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


def linear_betas(steps, start=1e-4, end=2e-2):
    return torch.linspace(start**0.5, end**0.5, steps) ** 2


class Denoiser(nn.Module):
    def __init__(self, channels=2, dim=8):
        super().__init__()
        self.time = nn.Sequential(nn.Linear(1, dim), nn.SiLU(), nn.Linear(dim, channels))
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, t):
        emb = self.time(t.float().unsqueeze(-1) / 100)
        return self.conv(x + emb[:, :, None, None])


class LatentDiffusion(nn.Module):
    def __init__(self, timesteps=20, logvar_init=0.0, learn_logvar=False, elbo_weight=0.1):
        super().__init__()
        self.num_timesteps = timesteps
        self.learn_logvar = learn_logvar
        self.elbo_weight = elbo_weight
        self.model = Denoiser()
        self.register_schedule()
        logvar = torch.full(size=(timesteps,), fill_value=logvar_init)
        if learn_logvar:
            self.logvar = nn.Parameter(logvar, requires_grad=True)
        else:
            self.logvar = logvar  # ROOT

    def register_schedule(self):
        alphas = torch.cumprod(1 - linear_betas(self.num_timesteps), dim=0)
        self.register_buffer("sqrt_alphas", alphas.sqrt())
        self.register_buffer("sqrt_one_minus_alphas", (1 - alphas).sqrt())

    @property
    def device(self):
        return self.sqrt_alphas.device

    def q_sample(self, x, t, noise):
        shape = (-1, 1, 1, 1)
        return self.sqrt_alphas[t].view(shape) * x + self.sqrt_one_minus_alphas[t].view(shape) * noise

    def p_losses(self, x, t):
        noise = torch.randn_like(x)
        out = self.model(self.q_sample(x, t, noise), t)
        simple = F.mse_loss(out, noise, reduction="none").mean([1, 2, 3])
        logvar_t = self.logvar[t].to(self.device)  # RAISE # ALSO
        loss = simple / torch.exp(logvar_t) + logvar_t
        if self.learn_logvar:
            loss = loss + self.logvar.mean()
        return loss.mean() + self.elbo_weight * simple.mean()

    def forward(self, x):
        t = torch.randint(0, self.num_timesteps, (x.shape[0],), device=self.device)
        return self.p_losses(x, t)


def train(model, device, steps=2):
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-3)
    for _ in range(steps):
        batch = torch.randn(4, 2, 8, 8).to(device)
        loss = model(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = "cuda" if torch.cuda.is_available() else "cpu"
    print(train(LatentDiffusion().to(device), device))
