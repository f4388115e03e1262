# source: iver56/torch-audiomentations#70
# mechanism: an augmentation reads background noise with a file reader, on the CPU, and adds it to waveforms on the GPU
# expect: raises
import os
import random
import tempfile

import torch
from torch import nn


def rms(samples):
    return samples.square().mean(dim=-1, keepdim=True).sqrt()


class NoiseReader:
    def __init__(self, sample_rate):
        self.sample_rate = sample_rate

    def length(self, path):
        return torch.load(path)["samples"].shape[-1]

    def __call__(self, path, offset=0, num_samples=None):
        samples = torch.load(path)["samples"].float()
        end = None if num_samples is None else offset + num_samples
        return samples[..., offset:end]


class WaveformTransform(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.p = p
        self.params = {}

    def forward(self, samples):
        if not self.training:
            return samples
        chosen = torch.rand(samples.shape[0], device=samples.device) < self.p
        if not bool(chosen.any()):
            return samples
        selected = samples[chosen]
        self.randomize_parameters(selected)
        out = samples.clone()
        out[chosen] = self.apply_transform(selected)
        return out


class AddBackgroundNoise(WaveformTransform):
    def __init__(self, paths, min_snr=3.0, max_snr=20.0, sample_rate=16, p=0.5):
        super().__init__(p)
        self.paths = list(paths)
        self.snr_range = (min_snr, max_snr)
        self.reader = NoiseReader(sample_rate)

    def random_background(self, target_samples):
        pieces, missing = [], target_samples
        while missing > 0:
            path = random.choice(self.paths)
            total = self.reader.length(path)
            size = min(missing, total)
            pieces.append(self.reader(path, random.randint(0, total - size), size))
            missing -= size
        background = torch.cat(pieces, dim=-1)
        return background / rms(background).clamp(min=1e-8)

    def randomize_parameters(self, selected):
        n, num_samples = selected.shape[0], selected.shape[-1]
        low, high = self.snr_range
        noise = [self.random_background(num_samples) for _ in range(n)]
        self.params["background"] = torch.stack(noise)  # ROOT
        self.params["snr"] = low + (high - low) * torch.rand(n, 1, device=selected.device)

    def apply_transform(self, selected):
        background = self.params["background"]  # ALSO
        level = rms(selected) / 10 ** (self.params["snr"] / 20)
        return selected + level * background  # RAISE # ALSO


class KeywordNet(nn.Module):
    def __init__(self, samples, classes=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(samples, 8), nn.ReLU(), nn.Linear(8, classes))

    def forward(self, x):
        return self.net(x)


def write_noises(folder, n=2):
    paths = []
    for i in range(n):
        path = os.path.join(folder, "noise%d.pt" % i)
        torch.save({"samples": torch.randn(20 + 5 * i)}, path)
        paths.append(path)
    return paths


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    with tempfile.TemporaryDirectory() as folder:
        augment = AddBackgroundNoise(write_noises(folder), p=1.0).to(device)
        model = KeywordNet(32).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            audio, label = torch.randn(4, 32).to(device), torch.randint(0, 2, (4,)).to(device)
            loss = nn.functional.cross_entropy(model(augment(audio)), label)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print("loss %.3f" % loss.item())


if __name__ == "__main__":
    main()
