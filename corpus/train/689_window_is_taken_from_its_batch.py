# source: unit8co/darts PR#388 (#381)
# mechanism: [data not moved] training moves each batch, prediction takes the first entry of the loader's tuple as it is
# phase: prediction; failing op: aten::addmm
# expect: raises
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, window, horizon):
        super().__init__()
        self.hidden = nn.Linear(window, 12)
        self.out = nn.Linear(12, horizon)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))  # RAISE


class Forecaster:
    def __init__(self, window, horizon, device=None):
        self.window, self.horizon = window, horizon
        self.device = torch.device(device or "cpu")
        self.model = Block(window, horizon).to(self.device)
        self.criterion = nn.MSELoss().to(self.device)

    def fit(self, series, epochs=2):
        span = self.window + self.horizon
        rows = series.unfold(0, span, 1)
        loader = DataLoader(TensorDataset(rows[:, :self.window], rows[:, self.window:]), batch_size=8)
        opt = torch.optim.Adam(self.model.parameters())
        for _ in range(epochs):
            for batch in loader:
                past, future = (part.to(self.device) for part in batch)
                loss = self.criterion(self.model(past), future)
                opt.zero_grad()
                loss.backward()
                opt.step()
        return self

    def predict(self, n, *series):
        tails = torch.stack([s[-self.window:] for s in series])  # ALSO
        pieces = []
        self.model.eval()
        with torch.no_grad():
            for batch in DataLoader(TensorDataset(tails), batch_size=4):  # ALSO
                past = batch[0]  # ROOT
                steps = []
                while sum(s.shape[1] for s in steps) < n:
                    steps.append(self.model(past))
                    past = torch.cat([past, steps[-1]], dim=1)[:, -self.window:]
                pieces.append(torch.cat(steps, dim=1)[:, :n].cpu())
        return torch.cat(pieces)


passengers = torch.arange(60.0).sin() + torch.arange(60.0) / 30
model = Forecaster(window=10, horizon=3, device="cuda:0").fit(passengers)
print(model.predict(7, passengers, passengers.flip(0)).shape)
