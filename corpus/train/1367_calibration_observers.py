# source: pytorch/pytorch#29648
# mechanism: calibration keeps running minima and maxima as plain attributes of a module, which .to() of the calibrated model does not move
# expect: raises
from collections import OrderedDict

import torch
from torch import nn


class ChannelObserver(nn.Module):
    def __init__(self, channels, averaging=None):
        super().__init__()
        self.averaging = averaging
        for name, start in (("min_val", float("inf")), ("max_val", float("-inf"))):
            setattr(self, name, torch.full((channels,), start))  # ROOT

    def forward(self, x):
        values = x.detach().transpose(0, 1).flatten(1)
        low, high = values.amin(1), values.amax(1)
        if self.averaging is not None and torch.isfinite(self.min_val).all():
            low = self.min_val + self.averaging * (low - self.min_val)
            high = self.max_val + self.averaging * (high - self.max_val)
            self.min_val, self.max_val = low, high
        else:
            self.min_val = torch.min(low, self.min_val)  # RAISE
            self.max_val = torch.max(high, self.max_val)
        return x

    def scale(self, bits=8):
        return (self.max_val - self.min_val).clamp(min=1e-6) / (2 ** bits - 1)


class ObservedBlock(nn.Module):
    def __init__(self, block, channels):
        super().__init__()
        self.block = block
        self.observer = ChannelObserver(channels)
        self.calibrating = False

    def forward(self, x):
        out = self.block(x)
        return self.observer(out) if self.calibrating else out


class ConvNet(nn.Module):
    def __init__(self, width=4, classes=3):
        super().__init__()
        self.features = nn.Sequential(OrderedDict([
            ("stem", ObservedBlock(nn.Sequential(nn.Conv2d(1, width, 3), nn.BatchNorm2d(width), nn.ReLU()), width)),
            ("body", ObservedBlock(nn.Sequential(nn.Conv2d(width, width, 3), nn.ReLU()), width)),
        ]))
        self.classifier = nn.Linear(width, classes)

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))

    def set_calibrating(self, flag):
        for module in self.modules():
            if isinstance(module, ObservedBlock):
                module.calibrating = flag


@torch.no_grad()
def calibrate(model, batches, device):
    model.eval()
    model.set_calibrating(True)
    for images in batches:
        model(images.to(device))
    model.set_calibrating(False)
    return {name: m.scale() for name, m in model.named_modules() if isinstance(m, ChannelObserver)}


def calibration_data(n, batch_size=4):
    gen = torch.Generator().manual_seed(11)
    return [torch.randn(batch_size, 1, 8, 8, generator=gen) for _ in range(n)]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = ConvNet().to(device)
    scales = calibrate(model, calibration_data(3), device)
    for name, scale in scales.items():
        print(name, [round(v, 4) for v in scale.tolist()])


if __name__ == "__main__":
    main()
