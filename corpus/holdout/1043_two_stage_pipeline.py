# source: own program
# mechanism: the text stage runs on the host and the image stage on the GPU, with noise drawn by a host generator and moved explicitly for reproducibility
# expect: clean
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Stage:
    module: nn.Module
    device: torch.device

    def __post_init__(self):
        self.module.to(self.device).eval()

    def __call__(self, *args):
        return self.module(*(a.to(self.device) for a in args))


class TextEncoder(nn.Module):
    def __init__(self, vocab=64, dim=12):
        super().__init__()
        self.embed = nn.EmbeddingBag(vocab, dim)

    def forward(self, tokens):
        return torch.tanh(self.embed(tokens))


class Denoiser(nn.Module):
    def __init__(self, channels=4, dim=12):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1)
        self.cond = nn.Linear(dim + 1, channels)

    def forward(self, x, text, t):
        cond = torch.cat([text, t.expand(len(text), 1)], dim=1)
        return self.conv(x) + self.cond(cond)[:, :, None, None]


class Scheduler:
    def __init__(self, steps):
        self.sigmas = torch.linspace(1, 0, steps + 1)

    def pairs(self):
        return zip(self.sigmas[:-1], self.sigmas[1:])

    def step(self, velocity, sigma, following, x):
        return x + (following - sigma) * velocity


class Pipeline:
    def __init__(self, text_device, image_device, steps=4):
        self.text = Stage(TextEncoder(), torch.device(text_device))
        self.image = Stage(Denoiser(), torch.device(image_device))
        self.scheduler = Scheduler(steps)

    def noise(self, batch, seed):
        generator = torch.Generator("cpu").manual_seed(seed)
        return torch.randn(batch, 4, 6, 6, generator=generator).to(self.image.device)

    @torch.no_grad()
    def __call__(self, tokens, seed):
        text = self.text(tokens)
        x = self.noise(len(tokens), seed)
        for sigma, following in self.scheduler.pairs():
            x = self.scheduler.step(self.image(x, text, sigma.view(1, 1)), sigma, following, x)
        return x.cpu()


def main():
    torch.manual_seed(0)
    pipe = Pipeline("cpu", "cuda")
    tokens = torch.randint(0, 64, (2, 5))
    first, second = pipe(tokens, seed=3), pipe(tokens, seed=3)
    print(torch.allclose(first, second), first.device.type, round(first.std().item(), 4))


if __name__ == "__main__":
    main()
