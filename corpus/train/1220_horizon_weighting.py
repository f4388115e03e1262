# source: Nixtla/neuralforecast PR#706
# mechanism: a user's tensor of horizon weights is kept by the loss and expanded beside a mask that is on the device
# expect: raises
from typing import Dict, Optional, Union

import torch
from torch import nn


def _weighted_mean(losses: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    return (losses * weights).sum() / weights.sum().clamp_min(1e-8)


class BasePointLoss(nn.Module):
    def __init__(self, horizon_weight: Optional[torch.Tensor], outputsize_multiplier: int):
        super().__init__()
        if horizon_weight is not None:
            horizon_weight = horizon_weight.flatten()
        self.horizon_weight = horizon_weight  # ALSO
        self.outputsize_multiplier = outputsize_multiplier

    def _compute_weights(self, y: torch.Tensor, mask: Optional[torch.Tensor]) -> torch.Tensor:
        if mask is None:
            mask = torch.ones_like(y)
        if self.horizon_weight is None:
            return mask
        weights = self.horizon_weight.repeat(y.shape[0], 1)  # ROOT
        return weights * mask  # RAISE # ALSO


class MAE(BasePointLoss):
    def __init__(self, horizon_weight: Optional[torch.Tensor] = None):
        super().__init__(horizon_weight, 1)

    def forward(self, y: torch.Tensor, y_hat: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        return _weighted_mean((y - y_hat).abs(), self._compute_weights(y, mask))


class HuberLoss(BasePointLoss):
    def __init__(self, delta: float = 1.0, horizon_weight: Optional[torch.Tensor] = None):
        super().__init__(horizon_weight, 1)
        self.delta = delta

    def forward(self, y: torch.Tensor, y_hat: torch.Tensor, mask: Optional[torch.Tensor] = None) -> torch.Tensor:
        losses = nn.functional.huber_loss(y, y_hat, reduction="none", delta=self.delta)
        return _weighted_mean(losses, self._compute_weights(y, mask))


class MLPForecast(nn.Module):
    def __init__(self, input_size: int, h: int, loss: BasePointLoss, hidden: int = 24):
        super().__init__()
        self.loss = loss
        self.net = nn.Sequential(nn.Linear(input_size, hidden), nn.ReLU(), nn.Linear(hidden, h))

    def forward(self, insample: torch.Tensor) -> torch.Tensor:
        loc = insample.mean(1, keepdim=True)
        return self.net(insample - loc) + loc


class WindowSampler:
    def __init__(self, panel: torch.Tensor, available: torch.Tensor, input_size: int, h: int):
        self.values, self.available = panel, available
        self.input_size, self.h = input_size, h

    def batch(self, n: int, device: Union[str, torch.device]) -> Dict[str, torch.Tensor]:
        span = self.input_size + self.h
        rows = torch.randint(0, self.values.shape[0], (n,))
        starts = torch.randint(0, self.values.shape[1] - span + 1, (n,))
        cols = starts[:, None] + torch.arange(span)
        y, m = self.values[rows[:, None], cols], self.available[rows[:, None], cols]
        parts = {
            "insample": y[:, : self.input_size],
            "outsample": y[:, self.input_size:],
            "mask": m[:, self.input_size:],
        }
        return {k: v.to(device) for k, v in parts.items()}


def fit(model: MLPForecast, sampler: WindowSampler, steps: int, device: torch.device) -> float:
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = torch.zeros(())
    for _ in range(steps):
        batch = sampler.batch(16, device)
        loss = model.loss(batch["outsample"], model(batch["insample"]), batch["mask"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(4)
    panel = torch.randn(5, 60).cumsum(1)
    sampler = WindowSampler(panel, (torch.rand(5, 60) > 0.1).float(), input_size=12, h=4)
    for loss in (MAE(), HuberLoss(horizon_weight=torch.tensor([4.0, 3.0, 2.0, 1.0]))):
        print(type(loss).__name__, fit(MLPForecast(12, 4, loss), sampler, 3, device))


if __name__ == "__main__":
    main()
