# source: yyvhang/IAGNet#4
# mechanism: the checkpoint is restored into the optimizer while the network is still on the host, and only afterwards is the network moved, so the restored moments stay on the CPU
# expect: raises
import io
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TrainConfig:
    in_dim: int = 12
    hidden: int = 16
    classes: int = 4
    lr: float = 1e-3
    device: str = "cuda"


class PointHead(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(cfg.in_dim, cfg.hidden), nn.ReLU())
        self.classifier = nn.Linear(cfg.hidden, cfg.classes)

    def forward(self, points):
        return self.classifier(self.encoder(points))


def build_model(cfg):
    torch.manual_seed(0)
    return PointHead(cfg)  # ALSO


def build_optimizer(model, cfg):
    return torch.optim.Adam(model.parameters(), lr=cfg.lr)


class Trainer:
    def __init__(self, cfg):
        self.cfg = cfg
        self.device = torch.device(cfg.device)
        self.model = build_model(cfg)  # ROOT
        self.optimizer = build_optimizer(self.model, cfg)  # ALSO
        self.criterion = nn.CrossEntropyLoss()
        self.epoch = 0

    def save(self):
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict(), "epoch": self.epoch}, buffer)
        buffer.seek(0)
        return buffer

    def resume(self, stream):
        ckpt = torch.load(stream, map_location="cpu")
        self.model.load_state_dict(ckpt["model"])  # ALSO
        self.optimizer.load_state_dict(ckpt["optimizer"])  # ALSO
        self.epoch = ckpt["epoch"]

    def train_epoch(self, batches):
        self.model.train()
        total = 0.0
        for points, labels in batches:
            points, labels = points.to(self.device), labels.to(self.device)
            loss = self.criterion(self.model(points), labels)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()  # RAISE
            total += loss.item()
        self.epoch += 1
        return total / len(batches)

    def fit(self, batches, epochs):
        self.model.to(self.device)
        return [self.train_epoch(batches) for _ in range(epochs)]


def make_batches(cfg, count=3):
    gen = torch.Generator().manual_seed(1)
    return [(torch.randn(8, cfg.in_dim, generator=gen), torch.randint(0, cfg.classes, (8,), generator=gen)) for _ in range(count)]


def main():
    cfg = TrainConfig()
    batches = make_batches(cfg)
    first = Trainer(cfg)
    print("first run", first.fit(batches, 1))
    stream = first.save()
    second = Trainer(cfg)
    second.resume(stream)
    print("resumed at", second.epoch, second.fit(batches, 1))


if __name__ == "__main__":
    main()
