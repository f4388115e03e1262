# source: microsoft/Cream#2
# mechanism: on resume the state of the optimizer is loaded while the parameters are on the CPU, and the model is moved afterwards
# expect: raises
import os
import tempfile
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    lr: float = 0.1
    momentum: float = 0.9
    epochs: int = 2
    choices: int = 2
    save_path: str = ""
    auto_resume: bool = False


class ChoiceBlock(nn.Module):
    def __init__(self, dim, choices):
        super().__init__()
        self.paths = nn.ModuleList(nn.Linear(dim, dim) for _ in range(choices))

    def forward(self, x, choice):
        return x + torch.tanh(self.paths[choice](x))


class SuperNet(nn.Module):
    def __init__(self, dim, choices, classes):
        super().__init__()
        self.blocks = nn.ModuleList(ChoiceBlock(dim, choices) for _ in range(2))
        self.head = nn.Linear(dim, classes)

    def forward(self, x, architecture):
        for block, choice in zip(self.blocks, architecture):
            x = block(x, choice)
        return self.head(x)


def create_optimizer(cfg, model):
    return torch.optim.SGD(model.parameters(), lr=cfg.lr, momentum=cfg.momentum)


def checkpoint_path(cfg):
    return os.path.join(cfg.save_path, "checkpoint.pth.tar")


def save_checkpoint(cfg, model, optimizer, epoch):
    state = {"epoch": epoch, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, checkpoint_path(cfg))


def resume_checkpoint(model, path):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["state_dict"])
    return checkpoint["optimizer"], checkpoint["epoch"]


def train_epoch(model, loader, optimizer, device, choices):
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        architecture = torch.randint(0, choices, (2,)).tolist()
        loss = nn.functional.cross_entropy(model(x, architecture), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()  # RAISE
    return loss.item()


def run(cfg, loader, device):
    model = SuperNet(6, cfg.choices, 3)  # ALSO
    optimizer = create_optimizer(cfg, model)
    start = 0
    if cfg.auto_resume and os.path.exists(checkpoint_path(cfg)):
        optimizer_state, start = resume_checkpoint(model, checkpoint_path(cfg))
        optimizer.load_state_dict(optimizer_state)  # ROOT
    model = model.to(device)  # ALSO
    loss = None
    for epoch in range(start, cfg.epochs):
        loss = train_epoch(model, loader, optimizer, device, cfg.choices)
        save_checkpoint(cfg, model, optimizer, epoch + 1)
    return loss


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = [(torch.randn(4, 6), torch.randint(0, 3, (4,))) for _ in range(6)]
    with tempfile.TemporaryDirectory() as folder:
        print("loss %.3f" % run(Config(epochs=1, save_path=folder), loader, device))
        print("loss %.3f" % run(Config(epochs=2, save_path=folder, auto_resume=True), loader, device))


if __name__ == "__main__":
    main()
