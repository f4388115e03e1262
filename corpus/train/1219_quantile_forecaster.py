# source: sktime/pytorch-forecasting#1753
# mechanism: a checkpoint's weights are mapped to the device that is asked for, but the loss object is restored with the device it was trained on
# expect: raises
import os
import tempfile
from typing import Any, Dict, List, Optional

import torch
from torch import nn


class QuantileLoss:
    def __init__(self, quantiles: List[float], device: Optional[str] = None):
        self.quantiles = quantiles
        self.device = torch.device(device or "cpu")
        self.reset()

    def reset(self) -> None:
        self.total = torch.zeros((1,), device=self.device)
        self.levels = torch.tensor(self.quantiles, device=self.device)

    def to(self, device) -> "QuantileLoss":
        self.device = torch.device(device)
        self.reset()
        return self

    def loss(self, y_pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        errors = target.unsqueeze(-1) - y_pred
        losses = torch.maximum((self.levels - 1) * errors, self.levels * errors)  # RAISE
        return 2 * losses.mean()

    def update(self, y_pred: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        value = self.loss(y_pred, target)
        self.total = self.total + value.detach()
        return value

    def __getstate__(self) -> Dict[str, Any]:
        return {"quantiles": self.quantiles, "device": str(self.device)}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.__init__(**state)


class Forecaster(nn.Module):
    def __init__(self, context: int, horizon: int, loss: QuantileLoss):
        super().__init__()
        self.hparams = {"context": context, "horizon": horizon, "loss": loss}
        self.loss = loss
        self.horizon = horizon
        self.encoder = nn.GRU(1, 12, batch_first=True)
        self.head = nn.Linear(12, horizon * len(loss.quantiles))

    @property
    def device(self) -> torch.device:
        return self.head.weight.device

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        _, h = self.encoder(x.unsqueeze(-1))
        return self.head(h[-1]).view(x.shape[0], self.horizon, -1)

    def save_checkpoint(self, path: str) -> None:
        torch.save({"state_dict": self.state_dict(), "hparams": self.hparams}, path)

    @classmethod
    def load_from_checkpoint(cls, path: str, map_location: str) -> "Forecaster":
        checkpoint = torch.load(path, map_location=map_location, weights_only=False)
        model = cls(**checkpoint["hparams"])  # ALSO
        model.load_state_dict(checkpoint["state_dict"])
        return model.to(map_location)  # ROOT


def windows(series: torch.Tensor, context: int, horizon: int):
    chunks = series.unfold(0, context + horizon, 3)
    return chunks[:, :context], chunks[:, context:]


def train(model: Forecaster, x: torch.Tensor, y: torch.Tensor, epochs: int = 3) -> None:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        loss = model.loss.update(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def evaluate(path: str, x: torch.Tensor, y: torch.Tensor, map_location: str) -> float:
    model = Forecaster.load_from_checkpoint(path, map_location=map_location).eval()
    with torch.no_grad():
        return model.loss.update(model(x.to(map_location)), y.to(map_location)).item()


def main() -> None:
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    x, y = windows(torch.sin(torch.arange(90) / 5.0), 12, 4)
    model = Forecaster(12, 4, QuantileLoss([0.1, 0.5, 0.9]).to(device)).to(device)
    train(model, x.to(device), y.to(device))
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "last.ckpt")
        model.save_checkpoint(path)
        print("loss", evaluate(path, x, y, map_location="cpu"))


if __name__ == "__main__":
    main()
