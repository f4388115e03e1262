# source: PTB-MR/mrpro#279
# mechanism: an object of tensors is rebuilt with what a function makes of them, and one of its fields is left out
# phase: training; aten::mul
# expect: raises
import dataclasses
from typing import Callable

import torch
from torch import nn


@dataclasses.dataclass(frozen=True)
class Scan:
    samples: torch.Tensor
    coils: torch.Tensor
    density: torch.Tensor
    patient: str = ""

    def map(self, function: Callable) -> "Scan":
        return dataclasses.replace(self, samples=function(self.samples), coils=function(self.coils))  # ROOT

    def image(self) -> torch.Tensor:
        weighted = self.samples * self.density  # RAISE
        return (torch.fft.ifft2(weighted) * self.coils.conj()).sum(dim=0)


def acquire(patient: str, coils: int = 3, side: int = 8) -> Scan:
    line = torch.linspace(-1, 1, side)
    radius = torch.hypot(line[:, None], line[None, :])
    sensitivity = torch.polar(1 / (1 + torch.rand(coils, side, side)), torch.rand(coils, side, side))
    return Scan(torch.fft.fft2(sensitivity * (radius < 0.7)), sensitivity, radius + 0.1, patient)


class Trainer:
    def __init__(self, network: nn.Module, device: str):
        self.network = network.to(device)
        self.device = device
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=1e-3)

    def step(self, scan: Scan) -> torch.Tensor:
        scan = scan.map(lambda tensor: tensor.to(self.device))
        image = scan.image().abs()[None, None]
        loss = (self.network(image) - image.clamp(max=1)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


trainer = Trainer(nn.Conv2d(1, 1, 3, padding=1), device="cuda")
for name in ("first", "second", "third"):
    trainer.step(acquire(name))
