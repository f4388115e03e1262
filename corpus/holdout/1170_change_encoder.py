# source: likyoo/change_detection.pytorch#32
# mechanism: pretrained weights are loaded on the GPU while the network is built on the CPU, and one of them replaces a parameter instead of being copied
# expect: raises
import os
import tempfile

import torch
from torch import nn

WEIGHTS = {}


def register_weights(folder, name, width):
    torch.manual_seed(21)
    state = {
        "conv1.weight": torch.randn(width, 3, 3, 3),
        "conv2.weight": torch.randn(width * 2, width, 3, 3),
        "conv2.bias": torch.zeros(width * 2),
    }
    path = os.path.join(folder, name + ".pt")
    torch.save(state, path)
    WEIGHTS[name] = path


def load_url(name):
    device = "cuda" if torch.cuda.is_available() else "cpu"  # ALSO
    return torch.load(WEIGHTS[name], map_location=device)  # ROOT


class Encoder(nn.Module):
    def __init__(self, in_channels=3, width=4):
        super().__init__()
        self.in_channels = in_channels
        self.conv1 = nn.Conv2d(in_channels, width, 3, stride=2, padding=1, bias=False)
        self.conv2 = nn.Conv2d(width, width * 2, 3, stride=2, padding=1)

    def load_pretrained(self, state):
        first = state.pop("conv1.weight")  # ALSO
        missing = self.load_state_dict(state, strict=False).missing_keys
        repeats = -(-self.in_channels // first.shape[1])
        adapted = first.repeat(1, repeats, 1, 1)[:, : self.in_channels] / repeats  # ALSO
        self.conv1.weight = nn.Parameter(adapted)  # ALSO
        return missing

    def forward(self, x):
        first = self.conv1(x).relu()  # RAISE
        return [first, self.conv2(first).relu()]


class FusionDecoder(nn.Module):
    def __init__(self, channels, classes):
        super().__init__()
        self.lateral = nn.ModuleList([nn.Conv2d(2 * c, 4, 1) for c in channels])
        self.head = nn.Conv2d(4, classes, 1)

    def forward(self, first, second):
        total = 0
        for lateral, a, b in zip(self.lateral, first, second):
            y = lateral(torch.cat([a, b], dim=1))
            total = total + nn.functional.interpolate(y, size=first[0].shape[-2:])
        return nn.functional.interpolate(self.head(total), scale_factor=2)


class ChangeUnet(nn.Module):
    def __init__(self, encoder_weights=None, in_channels=4, classes=2):
        super().__init__()
        self.encoder = Encoder(in_channels)
        if encoder_weights is not None:
            self.encoder.load_pretrained(load_url(encoder_weights))
        self.decoder = FusionDecoder(self.infer_channels(in_channels), classes)

    @torch.no_grad()
    def infer_channels(self, in_channels):
        return [f.shape[1] for f in self.encoder(torch.zeros(1, in_channels, 16, 16))]

    def forward(self, before, after):
        return self.decoder(self.encoder(before), self.encoder(after))


def train(model, device, steps):
    model.to(device).train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        before, after = torch.rand(2, 4, 16, 16).to(device), torch.rand(2, 4, 16, 16).to(device)
        target = ((before - after).abs().mean(1) > 0.3).long()
        loss = nn.functional.cross_entropy(model(before, after), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("step", step, round(loss.item(), 4))


def main():
    with tempfile.TemporaryDirectory() as folder:
        register_weights(folder, "tiny-imagenet", 4)
        model = ChangeUnet(encoder_weights="tiny-imagenet")
    train(model, torch.device("cuda" if torch.cuda.is_available() else "cpu"), 2)


if __name__ == "__main__":
    main()
