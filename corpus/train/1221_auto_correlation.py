# source: Nixtla/neuralforecast#522
# mechanism: at inference the index of the delays starts from a range made on the host, in training the values are only rolled
# expect: raises
import math
from typing import Tuple

import torch
from torch import nn


class SeriesDecomp(nn.Module):
    def __init__(self, kernel_size: int):
        super().__init__()
        self.kernel_size = kernel_size
        self.avg = nn.AvgPool1d(kernel_size, stride=1)

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        pad = (self.kernel_size - 1) // 2
        padded = torch.cat([x[:, :1].repeat(1, pad, 1), x, x[:, -1:].repeat(1, pad, 1)], dim=1)
        trend = self.avg(padded.transpose(1, 2)).transpose(1, 2)
        return x - trend, trend


def full_correlation(q: torch.Tensor, k: torch.Tensor, max_lag: int) -> torch.Tensor:
    lags = [(q * torch.roll(k, lag, dims=1)).mean(-1).mean(-1) for lag in range(max_lag)]
    return torch.stack(lags, dim=-1)


class AutoCorrelation(nn.Module):
    def __init__(self, d_model: int, factor: int = 1):
        super().__init__()
        self.factor = factor
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.value, self.out = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def _top_k(self, length: int) -> int:
        return max(1, int(self.factor * math.log(length)))

    def time_delay_agg_training(self, values: torch.Tensor, corr: torch.Tensor) -> torch.Tensor:
        top_k = self._top_k(values.shape[1])
        index = corr.mean(0).topk(top_k).indices
        weights = torch.softmax(corr[:, index], dim=-1)
        rolled = [torch.roll(values, -int(i), dims=1) * weights[:, j, None, None] for j, i in enumerate(index)]
        return sum(rolled)

    def time_delay_agg_inference(self, values: torch.Tensor, corr: torch.Tensor) -> torch.Tensor:
        batch, length, dim = values.shape
        weights, delay = corr.topk(self._top_k(length), dim=-1)
        weights = torch.softmax(weights, dim=-1)
        start = torch.arange(length).view(1, -1, 1).repeat(batch, 1, dim)  # ROOT
        doubled = values.repeat(1, 2, 1)
        agg = torch.zeros_like(values)
        for j in range(delay.shape[-1]):
            index = start + delay[:, j].view(-1, 1, 1)  # RAISE # ALSO
            agg = agg + torch.gather(doubled, 1, index) * weights[:, j, None, None]
        return agg

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)
        corr = full_correlation(q, k, x.shape[1])
        agg = self.time_delay_agg_training(v, corr) if self.training else self.time_delay_agg_inference(v, corr)
        return self.out(agg)


class Autoformer(nn.Module):
    def __init__(self, input_size: int, h: int, d_model: int = 8):
        super().__init__()
        self.embed = nn.Linear(1, d_model)
        self.attention, self.decomp = AutoCorrelation(d_model), SeriesDecomp(5)
        self.season, self.trend = nn.Linear(d_model, 1), nn.Linear(d_model, 1)
        self.project = nn.Linear(input_size, h)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(x.unsqueeze(-1))
        season, trend = self.decomp(hidden + self.attention(hidden))
        return self.project((self.season(season) + self.trend(trend)).squeeze(-1))


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    series = torch.sin(torch.arange(80) / 4.0).unfold(0, 20, 4).to(device)
    model = Autoformer(16, 4).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model.train()
    for _ in range(3):
        loss = nn.functional.l1_loss(model(series[:, :16]), series[:, 16:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print("val", nn.functional.l1_loss(model(series[:, :16]), series[:, 16:]).item())


if __name__ == "__main__":
    main()
