# source: pytorch/pytorch#98792
# mechanism: a data set lies on the GPU, and its loader is given a generator of the GPU, where the sampler draws its permutation on the CPU
# expect: raises
from dataclasses import dataclass
from typing import Optional

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class DataConfig:
    n: int = 40
    features: int = 4
    batch_size: int = 8
    val_fraction: float = 0.25
    seed: int = 7


class ResidentData:
    def __init__(self, cfg: DataConfig, device: torch.device):
        self.cfg = cfg
        self.device = device
        x = torch.randn(cfg.n, cfg.features)
        y = (x ** 2).sum(1, keepdim=True)
        mean, std = x.mean(0), x.std(0)
        self.dataset = TensorDataset(((x - mean) / std).to(device), y.to(device))
        self.train: Optional[TensorDataset] = None
        self.val: Optional[TensorDataset] = None

    def seeded(self, offset: int = 0) -> torch.Generator:
        generator = torch.Generator(device=self.device)  # ROOT
        generator.manual_seed(self.cfg.seed + offset)
        return generator

    def setup(self):
        n_val = int(self.cfg.n * self.cfg.val_fraction)
        split = torch.Generator().manual_seed(self.cfg.seed)
        self.train, self.val = random_split(self.dataset, [self.cfg.n - n_val, n_val], generator=split)

    def train_loader(self, epoch: int) -> DataLoader:
        generator = self.seeded(offset=epoch)
        return DataLoader(self.train, batch_size=self.cfg.batch_size, shuffle=True, generator=generator)  # ALSO

    def val_loader(self) -> DataLoader:
        return DataLoader(self.val, batch_size=self.cfg.batch_size)


def build_model(cfg: DataConfig, device: torch.device) -> nn.Module:
    model = nn.Sequential(nn.Linear(cfg.features, 16), nn.ReLU(), nn.Linear(16, 1))
    return model.to(device)


def train_epoch(model, loader, optimizer):
    model.train()
    for x, y in loader:  # RAISE
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    losses = [nn.functional.mse_loss(model(x), y) for x, y in loader]
    return torch.stack(losses).mean().item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    cfg = DataConfig()
    data = ResidentData(cfg, device)
    data.setup()
    model = build_model(cfg, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    print("before %.3f" % evaluate(model, data.val_loader()))
    for epoch in range(3):
        train_epoch(model, data.train_loader(epoch), optimizer)
    print("after %.3f" % evaluate(model, data.val_loader()))


if __name__ == "__main__":
    main()
