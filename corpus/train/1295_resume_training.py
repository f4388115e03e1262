# source: https://dev-solve.com/posts/3f078da
# mechanism: the optimizer's state is restored while the model is still on the CPU, and the model is moved to the GPU only afterwards
# expect: raises
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Regressor(nn.Module):
    def __init__(self, in_dim=6, hidden=10):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


class CheckpointManager:
    def __init__(self, folder):
        self.path = os.path.join(folder, "last.pth")

    def save(self, model, optimizer, epoch, best):
        torch.save({
            "epoch": epoch,
            "best": best,
            "state_dict": model.state_dict(),
            "optimizer": optimizer.state_dict(),
        }, self.path)

    def load(self, model, optimizer, map_location):
        checkpoint = torch.load(self.path, map_location=map_location)
        model.load_state_dict(checkpoint["state_dict"])
        optimizer.load_state_dict(checkpoint["optimizer"])
        return checkpoint["epoch"] + 1, checkpoint["best"]

    def exists(self):
        return os.path.exists(self.path)


class Session:
    def __init__(self, device, checkpoints, lr=1e-2):
        self.device, self.checkpoints = device, checkpoints
        self.model = Regressor()  # ALSO
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.start_epoch, self.best = 0, float("inf")

    def resume(self):
        if self.checkpoints.exists():
            self.start_epoch, self.best = self.checkpoints.load(self.model, self.optimizer, self.device)  # ROOT

    def train_one_epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # RAISE
            total += loss.item() * len(x)
        return total / len(loader.dataset)

    def run(self, loader, epochs):
        self.resume()  # ALSO
        self.model.to(self.device)  # ALSO
        for epoch in range(self.start_epoch, self.start_epoch + epochs):
            value = self.train_one_epoch(loader)
            self.best = min(self.best, value)
            self.checkpoints.save(self.model, self.optimizer, epoch, self.best)
        return self.start_epoch, self.best


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(TensorDataset(torch.randn(12, 6), torch.randn(12)), batch_size=4)
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(2):
            print(Session(device, CheckpointManager(folder)).run(loader, epochs=1))


if __name__ == "__main__":
    main()
