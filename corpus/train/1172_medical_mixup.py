# source: ivadomed/ivadomed#1062
# mechanism: the mixing coefficients of mixup are drawn on the CPU and multiplied with a batch that is on the GPU
# expect: raises
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

CONFIG = {
    "training": {"epochs": 2, "batch_size": 4, "lr": 1e-3, "mixup_alpha": 1.0},
    "model": {"in_channels": 1, "out_channels": 1, "width": 8},
    "gpu_ids": [0],
}


def define_device(gpu_ids):
    if torch.cuda.is_available() and gpu_ids:
        return torch.device("cuda", gpu_ids[0])
    return torch.device("cpu")


class Unet(nn.Module):
    def __init__(self, in_channels, out_channels, width):
        super().__init__()
        self.down = nn.Conv2d(in_channels, width, 3, stride=2, padding=1)
        self.up = nn.ConvTranspose2d(width, width, 2, stride=2)
        self.out = nn.Conv2d(width + in_channels, out_channels, 1)

    def forward(self, x):
        features = self.up(self.down(x).relu())
        return self.out(torch.cat([features, x], dim=1)).sigmoid()


class DiceLoss(nn.Module):
    def __init__(self, smooth=1.0):
        super().__init__()
        self.smooth = smooth

    def forward(self, prediction, target):
        prediction, target = prediction.flatten(1), target.flatten(1)
        overlap = (prediction * target).sum(1)
        return 1 - ((2 * overlap + self.smooth) / (prediction.sum(1) + target.sum(1) + self.smooth)).mean()


def draw_lambda(alpha, batch_size, rng):
    values = [rng.betavariate(alpha, alpha) for _ in range(batch_size)]
    return torch.tensor([max(v, 1 - v) for v in values]).view(-1, 1, 1, 1)


def mixup(data, targets, alpha, rng):
    indices = torch.randperm(data.size(0), device=data.device)
    lambda_tensor = draw_lambda(alpha, data.size(0), rng)  # ROOT
    data2, targets2 = data[indices], targets[indices]
    mixed = data * lambda_tensor + data2 * (1 - lambda_tensor)  # RAISE
    mixed_targets = targets * lambda_tensor + targets2 * (1 - lambda_tensor)
    return mixed, mixed_targets


def train_epoch(model, loader, loss_function, optimizer, device, params, rng):
    model.train()
    total = 0.0
    for samples, gt in loader:
        samples, gt = samples.to(device), gt.to(device)
        if params["mixup_alpha"] is not None:
            samples, gt = mixup(samples, gt, params["mixup_alpha"], rng)
        loss = loss_function(model(samples), gt)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


def synthetic_dataset(count, size):
    gen = torch.Generator().manual_seed(12)
    volumes = torch.rand(count, 1, size, size, generator=gen)
    return TensorDataset(volumes, (volumes > 0.6).float())


def main():
    torch.manual_seed(0)
    rng = random.Random(0)
    params = CONFIG["training"]
    device = define_device(CONFIG["gpu_ids"])
    loader = DataLoader(synthetic_dataset(8, 16), batch_size=params["batch_size"], shuffle=True)
    model = Unet(**CONFIG["model"]).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=params["lr"])
    for epoch in range(params["epochs"]):
        loss = train_epoch(model, loader, DiceLoss(), optimizer, device, params, rng)
        print(f"epoch {epoch} training loss {loss:.4f}")


if __name__ == "__main__":
    main()
