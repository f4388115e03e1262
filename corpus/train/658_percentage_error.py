# source: sktime/pytorch-forecasting#1352
# mechanism: actual values are collected from the loader on the CPU and compared with predictions that stay on the model's device
# phase: evaluation after training, in a metric class; sub
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class DemandWindows(Dataset):
    def __init__(self, series, past, horizon):
        self.series, self.past, self.horizon = series, past, horizon

    def __len__(self):
        return len(self.series) - self.past - self.horizon + 1

    def __getitem__(self, i):
        window = self.series[i : i + self.past + self.horizon]
        return window[: self.past], (window[self.past :], torch.ones(self.horizon))


class HorizonMetric(nn.Module):
    def to_prediction(self, y_pred):
        return y_pred.squeeze(-1) if y_pred.ndim == 3 else y_pred

    def forward(self, y_pred, target):
        return self.loss(y_pred, target).mean()


class SymmetricPercentage(HorizonMetric):
    def loss(self, y_pred, target):
        y_pred = self.to_prediction(y_pred)
        return 2 * (y_pred - target).abs() / (y_pred.abs() + target.abs() + 1e-8)  # RAISE


class DemandModel(nn.Module):
    def __init__(self, past, horizon, metric):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(past, 32), nn.ReLU(), nn.Linear(32, horizon))
        self.metric = metric

    @property
    def device(self):
        return next(self.parameters()).device

    def forward(self, x):
        return self.net(x).unsqueeze(-1)

    def training_step(self, batch):
        x, (y, _) = batch
        return self.metric(self(x.to(self.device)), y.to(self.device))

    @torch.no_grad()
    def predict(self, loader):
        output = []
        for x, _ in loader:
            output.append(self.metric.to_prediction(self(x.to(self.device))))  # ALSO
        return torch.cat(output)  # ALSO


torch.manual_seed(4)
series = torch.sin(torch.arange(120) / 6.0) + 2
past, horizon = 12, 4
train_loader = DataLoader(DemandWindows(series[:90], past, horizon), batch_size=16, shuffle=True)
val_loader = DataLoader(DemandWindows(series[80:], past, horizon), batch_size=8)
model = DemandModel(past, horizon, SymmetricPercentage()).to("cuda")
opt = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(2):
    for batch in train_loader:
        opt.zero_grad()
        model.training_step(batch).backward()
        opt.step()

actuals = torch.cat([y[0] for x, y in iter(val_loader)])  # ROOT
predictions = model.predict(val_loader)  # ALSO
print(SymmetricPercentage()(predictions, actuals).item())  # ALSO
