# source: FENRlR/MB-iSTFT-VITS2 PR#17
# mechanism: a helper's device argument has a default; one of its two callers leaves it out
# phase: inference; mul
# expect: raises
import torch
from torch import nn


def taper(length, sharpness=2.0, device="cpu"):
    ramp = torch.linspace(-1.0, 1.0, length, device=device)
    return torch.exp(-sharpness * ramp ** 2)


class Splitter:
    def __init__(self, device, bands):
        self.device = device
        self.bands = bands

    def analyse(self, wave):
        window = taper(wave.shape[-1], device=self.device)
        return torch.stack(torch.chunk(wave * window, self.bands, dim=-1), dim=1)

    def join(self, parts):
        window = taper(parts.shape[-1], 1.0)  # ROOT
        return (parts * window).flatten(1)  # RAISE  # ALSO


class Denoiser(nn.Module):
    def __init__(self, device, size=16, bands=4):
        super().__init__()
        self.splitter = Splitter(device, bands)
        self.net = nn.Linear(size // bands, size // bands)

    def forward(self, wave):
        parts = self.splitter.analyse(wave)
        return self.splitter.join(self.net(parts))


device = torch.device("cuda:0")
denoiser = Denoiser(device).to(device).eval()
with torch.no_grad():
    clean = denoiser(torch.randn(3, 16).to(device))
print(clean.abs().mean())
