# source: bernardo-torres/spectral-optimal-transport#3
# mechanism: a spectral loss is a module that keeps the frequency positions of its scales in a plain dictionary, which to() does not reach
# expect: raises
import torch
from torch import nn


class Spectrogram(nn.Module):
    def __init__(self, n_fft):
        super().__init__()
        self.n_fft = n_fft
        self.register_buffer("window", torch.hann_window(n_fft), persistent=False)

    def forward(self, audio):
        frames = audio.unfold(-1, self.n_fft, self.n_fft // 2) * self.window
        return torch.fft.rfft(frames).abs()


def frequency_positions(n_fft, log_scale):
    hertz = torch.linspace(0, 1, n_fft // 2 + 1)
    return torch.log1p(10 * hertz) / torch.log1p(torch.tensor(10.0)) if log_scale else hertz


def normalize_mass(spec, eps=1e-7):
    spec = spec + eps
    return spec / spec.sum(dim=-1, keepdim=True)


def wasserstein_1d(p, q, positions, power=2):
    """Transport cost by sorting the joint levels of both cumulative masses."""
    cdf_p, cdf_q = p.cumsum(-1).contiguous(), q.cumsum(-1).contiguous()
    levels = torch.cat([cdf_p, cdf_q], dim=-1).sort(dim=-1).values.contiguous()
    last = len(positions) - 1
    index_p = torch.searchsorted(cdf_p.detach(), levels.detach()).clamp(max=last)
    index_q = torch.searchsorted(cdf_q.detach(), levels.detach()).clamp(max=last)
    cost = (positions[index_p] - positions[index_q]).abs() ** power  # RAISE
    widths = torch.diff(levels, prepend=torch.zeros_like(levels[..., :1]), dim=-1)
    return (widths * cost).sum(-1)


class MultiScaleTransportLoss(nn.Module):
    def __init__(self, sizes=(8, 16), log_scale=False, power=2):
        super().__init__()
        self.sizes, self.power = sizes, power
        self.transforms = nn.ModuleDict({str(n): Spectrogram(n) for n in sizes})
        self.positions = {n: frequency_positions(n, log_scale) for n in sizes}

    def scale_loss(self, x, y, n_fft):
        transform = self.transforms[str(n_fft)]
        p, q = normalize_mass(transform(x)), normalize_mass(transform(y))
        positions = self.positions[n_fft]  # ROOT
        return wasserstein_1d(p, q, positions, self.power).mean()  # ALSO

    def forward(self, x, y):
        return sum(self.scale_loss(x, y, n) for n in self.sizes) / len(self.sizes)


class Oscillator(nn.Module):
    def __init__(self, length=64, hidden=8):
        super().__init__()
        self.register_buffer("time", torch.linspace(0, 1, length))
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 2))

    def forward(self, control):
        pitch, gain = self.net(control).unbind(-1)
        phase = 2 * torch.pi * (4 + 20 * torch.sigmoid(pitch))[:, None] * self.time
        return torch.sigmoid(gain)[:, None] * torch.sin(phase)


def fit(model, criterion, device, steps=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    time = torch.linspace(0, 1, 64, device=device)
    for _ in range(steps):
        control = torch.rand(3, 2).to(device)
        target = torch.sin(2 * torch.pi * (4 + 20 * control[:, :1]) * time)
        loss = criterion(model(control), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    criterion = MultiScaleTransportLoss(log_scale=True).to(device)
    print(fit(Oscillator().to(device), criterion, device))
