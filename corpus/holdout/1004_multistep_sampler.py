# source: huggingface/diffusers#13450
# mechanism: set_timesteps always sends the noise levels back to the host, so the ratios derived from them cannot be stacked with a tensor made on the sample's device
# expect: raises
import torch
from torch import nn


class MultistepScheduler:
    def __init__(self, train_steps=100, order=2, shift=3.0):
        self.train_steps = train_steps
        self.order = order
        self.shift = shift
        self.history = []
        self.index = 0
        self.sigmas = None
        self.timesteps = None

    def set_timesteps(self, steps, device=None):
        sigmas = torch.linspace(0.99, 0.01, steps)
        sigmas = self.shift * sigmas / (1 + (self.shift - 1) * sigmas)
        self.timesteps = (sigmas * self.train_steps).to(device)
        self.sigmas = torch.cat([sigmas, torch.zeros(1)])
        self.sigmas = self.sigmas.to("cpu")  # ROOT
        self.history = []
        self.index = 0

    @staticmethod
    def log_snr(sigma):
        return torch.log((1 - sigma).clamp(min=1e-4)) - torch.log(sigma.clamp(min=1e-4))

    def ratios(self, sample, h):
        current = self.log_snr(self.sigmas[self.index])  # ALSO
        collected = []
        for back in range(1, len(self.history)):
            previous = self.log_snr(self.sigmas[self.index - back])  # ALSO
            collected.append((previous - current) / h)  # ALSO
        collected.append(torch.ones((), device=sample.device))  # ALSO
        return torch.stack(collected)  # RAISE # ALSO

    def step(self, velocity, sample):
        sigma, following = self.sigmas[self.index], self.sigmas[self.index + 1]  # ALSO
        h = self.log_snr(following) - self.log_snr(sigma)  # ALSO
        denoised = sample - sigma * velocity
        self.history = [denoised] + self.history[: self.order - 1]
        rks = self.ratios(sample, h)
        correction = torch.zeros_like(sample)
        for rk, older in zip(rks[:-1], self.history[1:]):
            correction = correction + 0.5 * (older - denoised) / rk
        self.index += 1
        return following * velocity + denoised + correction * 0.1


class VelocityNet(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.time = nn.Linear(1, channels)
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, t):
        return self.conv(x + self.time(t.view(1, 1) / 100.0)[:, :, None, None])


class Pipeline:
    def __init__(self, net, scheduler):
        self.net = net
        self.scheduler = scheduler

    def to(self, device):
        self.net.to(device)
        return self

    @property
    def device(self):
        return next(self.net.parameters()).device

    @torch.no_grad()
    def __call__(self, steps=4, size=8):
        self.scheduler.set_timesteps(steps, device=self.device)
        latents = torch.randn(1, 4, size, size, device=self.device)
        for t in self.scheduler.timesteps:
            latents = self.scheduler.step(self.net(latents, t), latents)
        return latents


if __name__ == "__main__":
    torch.manual_seed(0)
    pipe = Pipeline(VelocityNet(), MultistepScheduler()).to("cuda")
    print("latent std", pipe().std().item())
