# source: unit8co/darts PR#449, fixes #413
# mechanism: [data not moved] training loop moves each batch, the validation loop of the same class does not; the first epoch trains before it fails
# phase: validation at the end of an epoch; failing op: aten::linear / addmm
# expect: raises
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device("cuda", 0)


class ForecastingModel:
    def __init__(self, lookback, device):
        self.device = device
        self.model = nn.Sequential(nn.Linear(lookback, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
        self.criterion, self.optimizer = nn.MSELoss(), torch.optim.SGD(self.model.parameters(), lr=0.1)

    def _produce_output(self, past):
        return self.model(past)  # RAISE

    def _evaluate_validation_loss(self, loader):
        total = 0.0
        with torch.no_grad():
            for batch in loader:
                past, future = batch  # ROOT
                total += self.criterion(self._produce_output(past), future).item()  # ALSO
        return total / len(loader)

    def fit(self, train_loader, val_loader, epochs):
        for _ in range(epochs):
            for batch in train_loader:
                past, future = (t.to(self.device) for t in batch)
                loss = self.criterion(self._produce_output(past), future)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self._evaluate_validation_loss(val_loader)

train, val = (TensorDataset(torch.randn(n, 6), torch.randn(n, 1)) for n in (8, 4))
ForecastingModel(6, dev).fit(DataLoader(train, 4), DataLoader(val, 4), 2)
