# source: meteofrance/mfai#114
# mechanism: the feature network of a loss, which is no module of the trained model, takes its device when it is built, with the default "cpu", and predictions come from the GPU
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


class FeatureNet(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stages = nn.ModuleList(
            [nn.Conv2d(channels, 6, 3, padding=1), nn.Conv2d(6, 12, 3, stride=2, padding=1)]
        )

    def forward(self, x):
        features = []
        for stage in self.stages:
            x = torch.relu(stage(x))  # RAISE
            features.append(x)
        return features


class PerceptualLoss:
    def __init__(self, in_channels, device="cpu", alpha_feature=1.0, alpha_style=0.1):
        self.alpha_feature, self.alpha_style = alpha_feature, alpha_style
        self.network = FeatureNet(in_channels).eval().to(device)
        for p in self.network.parameters():
            p.requires_grad_(False)

    @staticmethod
    def gram(features):
        b, c, h, w = features.shape
        flat = features.view(b, c, h * w)
        return flat @ flat.transpose(1, 2) / (c * h * w)

    @staticmethod
    def rescale(x):
        low, high = x.amin(dim=(2, 3), keepdim=True), x.amax(dim=(2, 3), keepdim=True)
        return (x - low) / (high - low + 1e-6)

    def compute_perceptual_features(self, x):
        features = self.network(self.rescale(x))  # ALSO
        return features, [self.gram(f) for f in features]

    def __call__(self, preds, targets):
        pred_features, pred_styles = self.compute_perceptual_features(preds)  # ROOT
        with torch.no_grad():
            true_features, true_styles = self.compute_perceptual_features(targets)
        loss = preds.new_zeros(())
        for a, b in zip(pred_features, true_features):
            loss = loss + self.alpha_feature * (a - b).abs().mean()
        for a, b in zip(pred_styles, true_styles):
            loss = loss + self.alpha_style * (a - b).pow(2).mean()
        return loss


class UNetLike(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.down = nn.Conv2d(channels, 8, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(8, channels, 2, stride=2)

    def forward(self, x):
        return self.up(torch.relu(self.down(x)))


@dataclass
class Hyper:
    channels: int = 2
    lr: float = 1e-3
    loss: str = "mse"


def build_loss(hyper):
    if hyper.loss == "perceptual":
        return PerceptualLoss(hyper.channels)
    return {"mse": nn.MSELoss(), "l1": nn.L1Loss()}[hyper.loss]


class ForecastModule(nn.Module):
    def __init__(self, hyper):
        super().__init__()
        self.hyper = hyper
        self.model = UNetLike(hyper.channels)
        self.loss = build_loss(hyper)

    def training_step(self, batch):
        x, y = batch
        return self.loss(self.model(x), y)


class Trainer:
    def __init__(self, accelerator):
        self.device = torch.device("cuda" if accelerator == "gpu" else "cpu")

    def fit(self, module, loader):
        module.to(self.device)
        optimizer = torch.optim.Adam(module.parameters(), lr=module.hyper.lr)
        for batch in loader:
            loss = module.training_step([t.to(self.device) for t in batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    data = [(torch.rand(2, 2, 8, 8), torch.rand(2, 2, 8, 8)) for _ in range(2)]
    for name in ("mse", "perceptual"):
        print(name, Trainer("gpu").fit(ForecastModule(Hyper(loss=name)), data))
