# source: csteinmetz1/auraloss#34
# mechanism: the filterbank is an ordinary attribute of the loss module and not a buffer, so moving the loss to the GPU leaves it on the host
# expect: raises
import torch
from torch import nn


def triangular_filters(n_bins, bands):
    centres = torch.linspace(0, n_bins - 1, bands + 2)
    bins = torch.arange(n_bins).float()
    rising = (bins - centres[:-2, None]) / (centres[1:-1] - centres[:-2])[:, None]
    falling = (centres[2:, None] - bins) / (centres[2:] - centres[1:-1])[:, None]
    return torch.minimum(rising, falling).clamp(min=0)


class STFTLoss(nn.Module):
    def __init__(self, n_fft, hop_length, bands=None):
        super().__init__()
        self.n_fft = n_fft
        self.hop_length = hop_length
        self.bands = bands
        self.register_buffer("window", torch.hann_window(n_fft))
        if bands is not None:
            self.fb = triangular_filters(n_fft // 2 + 1, bands)[None]  # ROOT

    def spectrum(self, x):
        spec = torch.stft(x, self.n_fft, self.hop_length, window=self.window, return_complex=True)
        magnitude = spec.abs().clamp(min=1e-6)
        if self.bands is None:
            return magnitude
        return torch.matmul(self.fb, magnitude) + 1e-6  # RAISE # ALSO

    def forward(self, y_hat, y):
        predicted, real = self.spectrum(y_hat), self.spectrum(y)
        magnitude = (predicted.log() - real.log()).abs().mean()
        convergence = (real - predicted).norm() / real.norm()
        return magnitude, convergence


class MultiScaleSTFTLoss(nn.Module):
    def __init__(self, scales):
        super().__init__()
        self.losses = nn.ModuleList(STFTLoss(*scale) for scale in scales)

    def forward(self, y_hat, y):
        pairs = [loss(y_hat, y) for loss in self.losses]
        return sum(m for m, _ in pairs) / len(pairs), sum(c for _, c in pairs) / len(pairs)


class GeneratorLoss(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.weight = config["stft_loss_weight"]
        self.stft_loss = MultiScaleSTFTLoss(config["scales"])

    def forward(self, y_hat, y):
        magnitude, convergence = self.stft_loss(y_hat, y)
        return {"loss": self.weight * (magnitude + convergence), "mg": magnitude.item(), "sc": convergence.item()}


class Vocoder(nn.Module):
    def __init__(self, mels=8, upsample=16):
        super().__init__()
        self.pre = nn.Conv1d(mels, 16, 3, padding=1)
        self.up = nn.ConvTranspose1d(16, 1, upsample, stride=upsample)

    def forward(self, mel):
        return torch.tanh(self.up(torch.relu(self.pre(mel)))).squeeze(1)


def format_data(batch, use_cuda):
    return tuple(t.cuda() if use_cuda else t for t in batch)


def train(config, use_cuda=True):
    model, criterion = Vocoder(), GeneratorLoss(config)
    if use_cuda:
        model.cuda()
        criterion.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=config["lr"])
    for _ in range(config["steps"]):
        mel, audio = format_data((torch.randn(2, 8, 10), torch.randn(2, 160) * 0.1), use_cuda)
        stats = criterion(model(mel), audio)
        optimizer.zero_grad()
        stats["loss"].backward()
        optimizer.step()
    return stats["loss"].item()


if __name__ == "__main__":
    torch.manual_seed(0)
    settings = {"lr": 1e-3, "steps": 3, "stft_loss_weight": 0.5, "scales": [(64, 16), (32, 8, 6)]}
    print("loss", train(settings))
