# source: richzhang/PerceptualSimilarity#91
# mechanism: a weighted loss keeps its terms in a dictionary, so the network of a perceptual term is not moved with it
# expect: raises
import torch
from torch import nn


class ScalingLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("shift", torch.tensor([-0.030, -0.088, -0.188])[None, :, None, None])
        self.register_buffer("scale", torch.tensor([0.458, 0.448, 0.450])[None, :, None, None])

    def forward(self, x):
        return (x - self.shift) / self.scale  # RAISE


class PatchSimilarity(nn.Module):
    def __init__(self, channels=6):
        super().__init__()
        self.scaling_layer = ScalingLayer()
        self.slices = nn.ModuleList([
            nn.Sequential(nn.Conv2d(3, channels, 3, padding=1), nn.ReLU()),
            nn.Sequential(nn.Conv2d(channels, channels, 3, stride=2), nn.ReLU()),
        ])
        self.requires_grad_(False).eval()

    def forward(self, x, y, normalize=False):
        if normalize:
            x, y = 2 * x - 1, 2 * y - 1
        x, y = self.scaling_layer(x), self.scaling_layer(y)
        total = 0
        for block in self.slices:
            x, y = block(x), block(y)
            total = total + (x - y).pow(2).mean((1, 2, 3))
        return total


class PerceptualLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.loss = PatchSimilarity()

    def forward(self, restored, target):
        return self.loss(restored[:, (2, 1, 0)], target[:, (2, 1, 0)], normalize=True).mean()


class CharbonnierLoss(nn.Module):
    def __init__(self, eps=1e-3):
        super().__init__()
        self.register_buffer("eps", torch.tensor(eps))

    def forward(self, restored, target):
        return torch.sqrt((restored - target) ** 2 + self.eps ** 2).mean()


REGISTRY = {"charbonnier": CharbonnierLoss, "perceptual": PerceptualLoss}


class CombinedLoss(nn.Module):
    def __init__(self, spec):
        super().__init__()
        self.weights = {name: float(weight) for name, weight in spec.items()}
        self.terms = {name: REGISTRY[name]() for name in spec}  # ROOT

    def forward(self, restored, target):
        values = {name: term(restored, target) for name, term in self.terms.items()}
        total = sum(self.weights[name] * value for name, value in values.items())
        return total, {name: value.item() for name, value in values.items()}


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 3, 3, padding=1))

    def forward(self, x):
        return x + self.net(x)


def degrade(images):
    return (images + 0.1 * torch.randn_like(images)).clamp(0, 1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Restorer().to(device)
    criterion = CombinedLoss({"charbonnier": 1.0, "perceptual": 0.1}).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        target = torch.rand(2, 3, 8, 8).to(device)
        loss, logs = criterion(model(degrade(target)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print({k: round(v, 4) for k, v in logs.items()})


if __name__ == "__main__":
    main()
