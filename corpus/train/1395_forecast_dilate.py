# source: AIStream-Peelout/flow-forecast#228
# mechanism: a table of losses makes a loss that has a device argument without handing on the device, and the default is the CPU
# expect: raises
from typing import Dict

import torch
from torch import nn


def pairwise_distances(x, y=None):
    y = x if y is None else y
    return (x.unsqueeze(1) - y.unsqueeze(0)).pow(2).sum(-1)


def soft_alignment(cost, gamma):
    rows = torch.softmax(-cost / gamma, dim=1)
    cols = torch.softmax(-cost / gamma, dim=0)
    return (rows * cols).sqrt()


class DilateLoss(nn.Module):
    def __init__(self, gamma=0.1, alpha=0.5, device="cpu"):
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha
        self.device = device

    def position_penalty(self, length):
        positions = torch.arange(1, length + 1, dtype=torch.float).view(length, 1)
        return pairwise_distances(positions).to(self.device) / length ** 2  # ALSO

    def forward(self, outputs, targets):
        batch, length = outputs.shape[:2]
        omega = self.position_penalty(length)  # ALSO
        shape_loss, temporal_loss = 0, 0
        for k in range(batch):
            cost = pairwise_distances(outputs[k].view(-1, 1), targets[k].view(-1, 1))
            path = soft_alignment(cost, self.gamma)
            shape_loss = shape_loss + (path * cost).sum()
            temporal_loss = temporal_loss + (path * omega).sum()  # RAISE # ALSO
        return (self.alpha * shape_loss + (1 - self.alpha) * temporal_loss) / batch


class RMSELoss(nn.Module):
    def forward(self, outputs, targets):
        return torch.sqrt(nn.functional.mse_loss(outputs, targets) + 1e-6)


def make_criterion(name: str, params: Dict, device: torch.device):
    if name == "dilate":
        return DilateLoss(**params)  # ROOT
    if name == "rmse":
        return RMSELoss()
    raise ValueError("no loss called " + name)


class Forecaster(nn.Module):
    def __init__(self, history, horizon, hidden=12):
        super().__init__()
        self.rnn = nn.GRU(1, hidden, batch_first=True)
        self.out = nn.Linear(hidden, horizon)
        self.history = history

    def forward(self, series):
        _, last = self.rnn(series[:, -self.history:, None])
        return self.out(last[-1])


class PyTorchForecast:
    def __init__(self, params: Dict):
        self.params = params
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self.model = Forecaster(params["history"], params["horizon"]).to(self.device)
        training = params["training"]
        self.criterion = make_criterion(training["criterion"], training["criterion_params"], self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=training["lr"])

    def fit(self, windows):
        for src, trg in windows:
            src, trg = src.to(self.device), trg.to(self.device)
            loss = self.criterion(self.model(src), trg)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def river_windows(history, horizon, n=4, batch=3):
    t = torch.linspace(0, 20, history + horizon + n)
    flow = torch.sin(t) + 0.1 * torch.randn_like(t)
    for i in range(n):
        window = flow[i:i + history + horizon].expand(batch, -1)
        yield window[:, :history].clone(), window[:, history:].clone()


def main():
    torch.manual_seed(0)
    params = {
        "history": 10,
        "horizon": 5,
        "training": {"criterion": "dilate", "criterion_params": {"gamma": 0.2, "alpha": 0.7}, "lr": 1e-2},
    }
    forecast = PyTorchForecast(params)
    print("loss %.4f" % forecast.fit(river_windows(params["history"], params["horizon"])))


if __name__ == "__main__":
    main()
