# source: open-mmlab/mmdetection#6538
# mechanism: settings are merged in the wrong order, and the default device wins
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn

STANDARD = {"device": "cpu", "latent": 4, "smooth": 0.9}


class Noise:
    def __init__(self, size, device):
        self.size, self.device = size, device

    def __call__(self, count):
        return torch.randn(count, self.size, device=self.device)


class Trainer:
    def __init__(self, generator, **given):
        settings = {**given, **STANDARD}  # ROOT
        self.generator = generator
        self.noise = Noise(settings["latent"], settings["device"])

    def sample(self, count):
        noise = self.noise(count)
        return self.generator(noise)  # RAISE


def main(device="cuda:0"):
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
    Trainer(generator, device=device).sample(3)


main()
