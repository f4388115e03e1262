# source: ourownstory/neural_prophet#1361
# mechanism: metrics with running sums are kept in a plain dict of the module, so that the module's move does not reach their states
# expect: raises
from typing import Dict, List

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(1), persistent=False)
        self.register_buffer("count", torch.zeros(1), persistent=False)

    def measure(self, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        raise NotImplementedError

    def update(self, preds: torch.Tensor, target: torch.Tensor) -> None:
        self.total += self.measure(preds, target).sum(0, keepdim=True)  # RAISE
        self.count += target.numel()

    def compute(self) -> float:
        return (self.total / self.count.clamp_min(1)).item()

    def reset(self) -> None:
        self.total.zero_()
        self.count.zero_()


class MeanAbsoluteError(Metric):
    def measure(self, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (preds - target).abs().flatten()


class MeanSquaredError(Metric):
    def measure(self, preds: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return (preds - target).pow(2).flatten()


METRICS = {"MAE": MeanAbsoluteError, "MSE": MeanSquaredError}


def get_metrics(names: List[str]) -> Dict[str, Metric]:
    return {name: METRICS[name]() for name in names}


class TimeNet(nn.Module):
    def __init__(self, n_lags: int, n_forecasts: int, metrics: List[str], n_changepoints: int = 4):
        super().__init__()
        self.register_buffer("changepoints", torch.linspace(0, 0.8, n_changepoints))
        self.trend_k = nn.Parameter(torch.zeros(1))
        self.trend_deltas = nn.Parameter(torch.zeros(n_changepoints))
        self.ar = nn.Linear(n_lags, n_forecasts)
        self.metrics_train = get_metrics(metrics)  # ROOT
        self.loss_fn = nn.SmoothL1Loss()

    def trend(self, t: torch.Tensor) -> torch.Tensor:
        past = torch.relu(t.unsqueeze(-1) - self.changepoints)
        return self.trend_k * t + (past * self.trend_deltas).sum(-1)

    def forward(self, t: torch.Tensor, lags: torch.Tensor) -> torch.Tensor:
        return self.ar(lags) + self.trend(t)

    def training_step(self, batch) -> torch.Tensor:
        t, lags, targets = batch
        predicted = self(t, lags)
        for metric in self.metrics_train.values():
            metric.update(predicted.detach(), targets)
        return self.loss_fn(predicted, targets)

    def epoch_end(self) -> Dict[str, float]:
        values = {name: m.compute() for name, m in self.metrics_train.items()}
        for metric in self.metrics_train.values():
            metric.reset()
        return values


def tabularize(series: torch.Tensor, n_lags: int, n_forecasts: int) -> TensorDataset:
    span = series.unfold(0, n_lags + n_forecasts, 1)
    pos = torch.arange(len(span))[:, None] + n_lags + torch.arange(n_forecasts)
    return TensorDataset(pos / len(series), span[:, :n_lags], span[:, n_lags:])


class Trainer:
    def __init__(self, device: torch.device, epochs: int):
        self.device, self.epochs = device, epochs

    def fit(self, model: TimeNet, dataset: TensorDataset) -> List[Dict[str, float]]:
        model.to(self.device)  # ALSO
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
        history = []
        for _ in range(self.epochs):
            for batch in DataLoader(dataset, batch_size=16, shuffle=True):
                loss = model.training_step([b.to(self.device) for b in batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            history.append(model.epoch_end())
        return history


if __name__ == "__main__":
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    data = tabularize(torch.sin(torch.arange(60) / 6.0), 6, 2)
    print(Trainer(device, 2).fit(TimeNet(6, 2, ["MAE", "MSE"]), data))
