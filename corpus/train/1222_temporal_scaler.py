# source: Nixtla/neuralforecast PR#667
# mechanism: a scaler's inverse transform, called for a plot on host data, leaves its shift and scale on the host for the next use
# expect: raises
from dataclasses import dataclass
from typing import Tuple

import torch
from torch import nn


class TemporalNorm(nn.Module):
    def __init__(self, dim: int = 1, eps: float = 1e-6):
        super().__init__()
        self.dim, self.eps = dim, eps
        self.x_shift = self.x_scale = None

    def transform(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        count = mask.sum(self.dim, keepdim=True).clamp_min(1)
        self.x_shift = (x * mask).sum(self.dim, keepdim=True) / count
        var = ((x - self.x_shift).pow(2) * mask).sum(self.dim, keepdim=True) / count
        self.x_scale = (var + self.eps).sqrt()
        return (x - self.x_shift) / self.x_scale

    def inverse_transform(self, z: torch.Tensor) -> torch.Tensor:
        self.x_shift, self.x_scale = self.x_shift.to(z.device), self.x_scale.to(z.device)  # ALSO
        return z * self.x_scale + self.x_shift


@dataclass
class Windows:
    insample: torch.Tensor
    outsample: torch.Tensor
    mask: torch.Tensor

    def to(self, device: torch.device) -> "Windows":
        return Windows(self.insample.to(device), self.outsample.to(device), self.mask.to(device))


class NHITSBlock(nn.Module):
    def __init__(self, input_size: int, h: int, pool: int):
        super().__init__()
        self.pool = nn.MaxPool1d(pool, ceil_mode=True)
        width = -(-input_size // pool)
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, input_size + h))
        self.input_size = input_size

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        theta = self.mlp(self.pool(x.unsqueeze(1)).squeeze(1))
        return theta[:, : self.input_size], theta[:, self.input_size:]


class NHITS(nn.Module):
    def __init__(self, input_size: int, h: int, pools=(1, 2, 4)):
        super().__init__()
        self.scaler = TemporalNorm()
        self.blocks = nn.ModuleList(NHITSBlock(input_size, h, p) for p in pools)
        self.h = h

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        residual, forecast = x, x.new_zeros(x.shape[0], self.h)
        for block in self.blocks:
            backcast, delta = block(residual)
            residual, forecast = residual - backcast, forecast + delta
        return forecast

    def validation_step(self, batch: Windows, history: list) -> torch.Tensor:
        z = self.scaler.transform(batch.insample, batch.mask)
        output = self(z)
        history.append(self.scaler.inverse_transform(output.cpu()).mean().item())  # ALSO
        y_loc, y_scale = self.scaler.x_shift, self.scaler.x_scale  # ROOT
        y_hat = output * y_scale + y_loc  # RAISE
        return nn.functional.l1_loss(y_hat, batch.outsample)

    def training_step(self, batch: Windows) -> torch.Tensor:
        z = self.scaler.transform(batch.insample, batch.mask)
        target = (batch.outsample - self.scaler.x_shift) / self.scaler.x_scale
        return nn.functional.mse_loss(self(z), target)


def make_windows(n: int, input_size: int, h: int) -> Windows:
    walk = torch.randn(n, input_size + h, generator=torch.Generator().manual_seed(8)).cumsum(1)
    return Windows(walk[:, :input_size], walk[:, input_size:], torch.ones(n, input_size))


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = NHITS(16, 4).to(device)
    train, val = make_windows(24, 16, 4).to(device), make_windows(8, 16, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    history: list = []
    for _ in range(2):
        loss = model.training_step(train)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            print("val", model.validation_step(val, history).item())


if __name__ == "__main__":
    main()
