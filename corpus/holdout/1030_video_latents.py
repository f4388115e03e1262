# source: huggingface/diffusers#10535
# mechanism: decode noise is drawn directly on the device of the latents with a generator that the user seeded on the host
# expect: raises
from dataclasses import dataclass
from typing import Optional

import torch
from torch import nn


def randn_tensor(shape, generator=None, device=None, dtype=None):
    rand_device = device
    if generator is not None and generator.device.type == "cpu":
        rand_device = "cpu"
    return torch.randn(shape, generator=generator, device=rand_device, dtype=dtype).to(device)


@dataclass
class VideoConfig:
    channels: int = 4
    frames: int = 3
    size: int = 6
    steps: int = 3
    decode_timestep: float = 0.05
    decode_noise_scale: Optional[float] = 0.025


class Denoiser(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.conv = nn.Conv3d(channels, channels, 3, padding=1)
        self.scale = nn.Linear(1, channels)

    def forward(self, x, t):
        return self.conv(x) * self.scale(t.view(-1, 1))[:, :, None, None, None]


class VideoDecoder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.register_buffer("latents_mean", torch.zeros(channels))
        self.register_buffer("latents_std", torch.ones(channels))
        self.out = nn.ConvTranspose3d(channels, 3, (1, 2, 2), stride=(1, 2, 2))

    def denormalize(self, latents):
        shape = (1, -1, 1, 1, 1)
        return latents * self.latents_std.view(shape) + self.latents_mean.view(shape)

    def forward(self, latents, timestep):
        return torch.tanh(self.out(self.denormalize(latents)) * (1 - timestep))


class VideoPipeline:
    def __init__(self, config):
        self.config = config
        self.transformer = Denoiser(config.channels)
        self.vae = VideoDecoder(config.channels)

    def to(self, device):
        self.transformer.to(device)
        self.vae.to(device)
        self.device = torch.device(device)
        return self

    def prepare_latents(self, batch, generator):
        c = self.config
        return randn_tensor((batch, c.channels, c.frames, c.size, c.size), generator=generator, device=self.device)

    def decode(self, latents, generator):
        timestep = self.config.decode_timestep
        if self.config.decode_noise_scale is not None:
            noise = torch.randn(latents.shape, generator=generator, device=latents.device, dtype=latents.dtype)  # RAISE # ROOT
            latents = (1 - self.config.decode_noise_scale) * latents + self.config.decode_noise_scale * noise
        return self.vae(latents, timestep)

    @torch.no_grad()
    def __call__(self, batch=1, generator=None):
        latents = self.prepare_latents(batch, generator)
        for t in torch.linspace(1, 0.1, self.config.steps, device=self.device):
            latents = latents - self.transformer(latents, t.expand(batch)) / self.config.steps
        return self.decode(latents, generator)


def generate(seed, device="cuda"):
    torch.manual_seed(0)
    pipe = VideoPipeline(VideoConfig()).to(device)
    generator = torch.Generator().manual_seed(seed)  # ALSO
    return pipe(batch=2, generator=generator)


if __name__ == "__main__":
    video = generate(seed=42)
    print("video", tuple(video.shape), round(video.std().item(), 4))
