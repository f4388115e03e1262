# source: huggingface/pytorch-image-models#2127
# mechanism: the averaged copy of the model is kept on the CPU and is interpolated towards live weights that were not brought to its device
# expect: raises
import copy
import math

import torch
from torch import nn


class WarmupDecay:
    def __init__(self, ceiling=0.999, gain=5.0):
        self.ceiling = ceiling
        self.gain = gain

    def __call__(self, step):
        return min(self.ceiling, (1 + step) / (self.gain + step))


class AveragedModel(nn.Module):
    def __init__(self, model, schedule, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval()
        self.schedule = schedule
        self.device = device
        self.updates = 0
        if device is not None:
            self.module.to(device=device)
        for p in self.module.parameters():
            p.requires_grad_(False)

    def _pairs(self, model):
        return zip(self.module.state_dict().values(), model.state_dict().values())  # ALSO

    @torch.no_grad()
    def update(self, model):
        decay = self.schedule(self.updates)
        self.updates += 1
        for average, live in self._pairs(model):
            if average.is_floating_point():
                average.lerp_(live, weight=1.0 - decay)  # RAISE # ROOT
            else:
                average.copy_(live)

    def forward(self, x):
        return self.module(x)


class ImageNet(nn.Module):
    def __init__(self, width=8, classes=5):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.stem(x).mean((2, 3)))


def parse_options():
    return {"model_ema": True, "model_ema_device": "cpu", "lr": 0.1, "steps": 3}  # ALSO


def create_average(model, options):
    if not options["model_ema"]:
        return None
    return AveragedModel(model, WarmupDecay(), device=options["model_ema_device"])  # ALSO


def main():
    torch.manual_seed(0)
    options = parse_options()
    model = ImageNet().to("cuda")
    average = create_average(model, options)
    optimizer = torch.optim.SGD(model.parameters(), lr=options["lr"], momentum=0.9)
    for step in range(options["steps"]):
        x = torch.randn(4, 3, 12, 12, device="cuda")
        y = torch.randint(0, 5, (4,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if average is not None:
            average.update(model)
        assert math.isfinite(loss.item())
    print("updates", average.updates, "loss", loss.item())


if __name__ == "__main__":
    main()
