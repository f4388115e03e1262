# source: https://discuss.pytorch.org/t/what-does-it-mean-to-move-a-loss-function-to-device-gpu/52832
# mechanism: a loss function with weights of its own is created beside the model and never moved, as plain losses need no move
# expect: raises
import torch
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, width=6):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(1, width, 3, stride=2, padding=1), nn.ReLU())
        self.dec = nn.ConvTranspose2d(width, 1, 2, stride=2)

    def forward(self, x):
        return torch.sigmoid(self.dec(self.enc(x)))


class PixelLoss(nn.Module):
    def __init__(self, kind="l1"):
        super().__init__()
        self.fn = nn.L1Loss() if kind == "l1" else nn.MSELoss()

    def forward(self, x_hat, x):
        return self.fn(x_hat, x)


class FeatureLoss(nn.Module):
    def __init__(self, n_layers=2, width=4, seed=9):
        super().__init__()
        torch.manual_seed(seed)
        sizes = [1] + [width] * n_layers
        self.slices = nn.ModuleList(nn.Conv2d(a, b, 3, padding=1) for a, b in zip(sizes, sizes[1:]))
        self.requires_grad_(False)

    def features(self, x):
        out = []
        for layer in self.slices:
            x = torch.relu(layer(x))  # RAISE
            out.append(x)
        return out

    def forward(self, x_hat, x):
        pairs = zip(self.features(x_hat), self.features(x))
        return sum(nn.functional.mse_loss(a, b.detach()) for a, b in pairs)


LOSSES = {"pixel": PixelLoss, "feature": FeatureLoss}


class WeightedSum:
    def __init__(self, terms):
        self.terms = terms

    def __call__(self, x_hat, x):
        return sum(weight * fn(x_hat, x) for fn, weight in self.terms)


def build_criterion(cfg, device):
    terms = []
    for name, weight in cfg["losses"].items():
        fn = LOSSES[name]()  # ROOT
        terms.append((fn, torch.tensor(weight, device=device)))  # ALSO
    return WeightedSum(terms)


def train(model, criterion, loader, cfg, device):
    optimizer = torch.optim.Adam(model.parameters(), lr=cfg["lr"])
    history = []
    for x in loader:
        x = x.to(device)
        loss = criterion(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append(loss.item())
    return history


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = [torch.rand(2, 1, 8, 8) for _ in range(2)]
    runs = [
        {"lr": 1e-3, "losses": {"pixel": 1.0}},
        {"lr": 1e-3, "losses": {"pixel": 1.0, "feature": 0.1}},
    ]
    for cfg in runs:
        torch.manual_seed(0)
        model = Autoencoder().to(device)
        criterion = build_criterion(cfg, device)
        print(list(cfg["losses"]), train(model, criterion, loader, cfg, device))


if __name__ == "__main__":
    main()
