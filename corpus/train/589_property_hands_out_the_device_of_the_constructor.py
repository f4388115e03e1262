# source: Lightning-AI/torchmetrics#542 (the device property of a metric that moves as a child of a module)
# mechanism: a module keeps its device in an attribute that only its own to() renews; as a part of another it is moved without
# phase: training step; aten::add
# expect: raises
import torch
from torch import nn


class NoiseSource(nn.Module):
    def __init__(self, channels, scale=0.1):
        super().__init__()
        self.gain = nn.Parameter(torch.full((channels,), scale))
        self.__dict__["_where"] = torch.device("cpu")

    @property
    def where(self):
        """The device that draws are made on."""
        return self._where  # ROOT

    def to(self, device):
        self._where = torch.device(device)
        return super().to(device)

    def draw(self, count):
        return torch.randn(count, self.gain.shape[0], device=self.where)  # ALSO


class Denoiser(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.noise = NoiseSource(channels)
        self.net = nn.Sequential(nn.Linear(channels, 16), nn.SiLU(), nn.Linear(16, channels))

    def forward(self, clean):
        disturbed = clean + self.noise.draw(len(clean))  # RAISE
        return self.net(disturbed)


model = Denoiser(4).to("cuda")
batch = torch.randn(8, 4, device="cuda")
(model(batch) - batch).pow(2).mean().backward()
