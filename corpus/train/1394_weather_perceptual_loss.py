# source: meteofrance/mfai#114
# mechanism: a perceptual loss settles its device when it is made, the current GPU, and the model that it judges runs on another one
# expect: raises
# needs: 2 GPUs
from typing import List, Optional

import torch
from torch import nn


class FeatureExtractor(nn.Module):
    def __init__(self, channels: int, blocks: int = 2):
        super().__init__()
        layers: List[nn.Module] = []
        inp = channels
        for i in range(blocks):
            layers.append(nn.Sequential(nn.Conv2d(inp, 4 * (i + 1), 3, padding=1), nn.ReLU()))
            inp = 4 * (i + 1)
        self.blocks = nn.ModuleList(layers)
        self.register_buffer("mean", torch.full((1, channels, 1, 1), 0.45))
        self.register_buffer("std", torch.full((1, channels, 1, 1), 0.22))

    def forward(self, x):
        x = (x - self.mean) / self.std  # RAISE
        outputs = []
        for block in self.blocks:
            x = block(x)
            outputs.append(x)
        return outputs


def gram(features):
    b, c, h, w = features.shape
    flat = features.reshape(b, c, h * w)
    return flat @ flat.transpose(1, 2) / (c * h * w)


class PerceptualLoss:
    def __init__(self, channels: int, device: Optional[str] = None, alpha_feature=1.0, alpha_style=1.0):
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.alpha_feature, self.alpha_style = alpha_feature, alpha_style
        self.network = FeatureExtractor(channels).eval().requires_grad_(False).to(self.device)

    def compute_features(self, x):
        return self.network(x)  # ALSO

    def __call__(self, preds, targets):
        pred_features = self.compute_features(preds)  # ROOT
        target_features = self.compute_features(targets)
        loss = preds.new_zeros(())
        for p, t in zip(pred_features, target_features):
            loss = loss + self.alpha_feature * nn.functional.l1_loss(p, t)
            loss = loss + self.alpha_style * nn.functional.mse_loss(gram(p), gram(t))
        return loss


class Nowcaster(nn.Module):
    def __init__(self, channels: int, hidden: int = 8):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(channels, hidden, 3, padding=1), nn.SiLU(), nn.Conv2d(hidden, channels, 3, padding=1)
        )

    def forward(self, x):
        return x + self.net(x)


class ForecastModule:
    def __init__(self, channels: int, lr: float = 1e-3):
        self.model = Nowcaster(channels)
        self.pixel_loss = nn.L1Loss()
        self.perceptual = PerceptualLoss(channels)
        self.lr = lr
        self.device = torch.device("cpu")

    def setup(self, device: torch.device):
        self.device = device
        self.model.to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=self.lr)

    def training_step(self, batch):
        inputs, targets = (t.to(self.device) for t in batch)
        preds = self.model(inputs)
        loss = self.pixel_loss(preds, targets) + 0.1 * self.perceptual(preds, targets)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def radar_batches(n, channels):
    for _ in range(n):
        frame = torch.rand(2, channels, 8, 8)
        yield frame, frame.roll(1, dims=-1)


def main():
    torch.manual_seed(0)
    module = ForecastModule(channels=2)
    module.setup(torch.device("cuda", 1))
    for batch in radar_batches(3, 2):
        loss = module.training_step(batch)
    print("loss %.4f" % loss)


if __name__ == "__main__":
    main()
