# source: speechbrain/speechbrain#1489
# mechanism: a regression kernel belongs to a plain helper object of the feature extractor and is used in a convolution without following the input
# expect: raises
import torch
from torch import nn
import torch.nn.functional as F


class DeltaFilter:
    """Regression filter over time, as used for delta and delta-delta features."""

    def __init__(self, n_channels, window=5):
        self.half = (window - 1) // 2
        taps = torch.arange(-self.half, self.half + 1, dtype=torch.float32)
        self.denom = float((taps ** 2).sum())
        self.kernel = taps.repeat(n_channels, 1, 1)

    def apply(self, feats):
        x = feats.transpose(1, 2)
        x = F.pad(x, (self.half, self.half), mode="replicate")
        x = F.conv1d(x, self.kernel, groups=x.shape[1]) / self.denom  # RAISE # ROOT
        return x.transpose(1, 2)


class FilterBank(nn.Module):
    def __init__(self, n_fft=32, n_mels=6):
        super().__init__()
        self.register_buffer("mel", torch.rand(n_fft // 2 + 1, n_mels))
        self.n_fft = n_fft

    def forward(self, wavs):
        frames = wavs.unfold(-1, self.n_fft, self.n_fft // 2)
        power = torch.fft.rfft(frames).abs() ** 2
        return torch.log(power @ self.mel + 1e-6)


class Fbank(nn.Module):
    def __init__(self, n_mels=6, deltas=False, context=False):
        super().__init__()
        self.banks = FilterBank(n_mels=n_mels)
        self.deltas = deltas
        self.context = context
        self.delta_filter = DeltaFilter(n_mels) if deltas else None

    def forward(self, wavs):
        feats = self.banks(wavs)
        if self.deltas:
            d1 = self.delta_filter.apply(feats)
            d2 = self.delta_filter.apply(d1)
            feats = torch.cat([feats, d1, d2], dim=2)
        if self.context:
            feats = torch.cat([feats, feats.roll(1, dims=1)], dim=2)
        return feats


class SentenceNorm(nn.Module):
    def forward(self, x, lens):
        steps = torch.arange(x.shape[1], device=x.device)
        mask = (steps < (lens * x.shape[1]).unsqueeze(1)).unsqueeze(-1)
        mean = (x * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)
        return (x - mean) * mask


class SpeakerBrain:
    def __init__(self, device):
        self.device = device
        self.modules = nn.ModuleDict({
            "compute_features": Fbank(deltas=True),
            "norm": SentenceNorm(),
            "classifier": nn.Linear(18, 4),
        }).to(device)

    def compute_forward(self, wavs, lens):
        wavs, lens = wavs.to(self.device), lens.to(self.device)
        feats = self.modules["norm"](self.modules["compute_features"](wavs), lens)
        return self.modules["classifier"](feats.mean(1))


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    brain = SpeakerBrain(device)
    wavs, lens = torch.randn(3, 256), torch.tensor([1.0, 0.8, 0.5])
    targets = torch.tensor([0, 2, 1], device=device)
    loss = F.cross_entropy(brain.compute_forward(wavs, lens), targets)
    loss.backward()
    print(loss.item())


if __name__ == "__main__":
    main()
