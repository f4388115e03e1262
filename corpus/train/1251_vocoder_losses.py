# source: mozilla/TTS#619
# mechanism: the window of a spectral loss is a plain tensor attribute, so moving the criterion leaves it on the CPU when torch.stft is called
# expect: raises
import torch
from torch import nn
import torch.nn.functional as F


class STFTConfig:
    resolutions = ((64, 16, 64), (32, 8, 32))
    sample_len = 256
    batch_size = 4


class Generator(nn.Module):
    def __init__(self, n_mels=8, upsample=16):
        super().__init__()
        self.pre = nn.Conv1d(n_mels, 16, 3, padding=1)
        self.up = nn.ConvTranspose1d(16, 1, upsample, stride=upsample)

    def forward(self, mel):
        return torch.tanh(self.up(F.relu(self.pre(mel)))).squeeze(1)


class STFTMagnitude(nn.Module):
    def __init__(self, n_fft, hop, win_length):
        super().__init__()
        self.n_fft, self.hop, self.win_length = n_fft, hop, win_length
        self.window = torch.hann_window(win_length)  # ROOT

    def forward(self, y):
        spec = torch.stft(y, self.n_fft, self.hop, self.win_length, self.window, return_complex=True)  # RAISE # ALSO
        return spec.abs().clamp(min=1e-7)


class MultiResolutionLoss(nn.Module):
    def __init__(self, resolutions):
        super().__init__()
        self.transforms = nn.ModuleList([STFTMagnitude(*r) for r in resolutions])
        self.register_buffer("scale", torch.tensor(1.0 / len(resolutions)))

    def forward(self, y_hat, y):
        total = y_hat.new_zeros(())
        for transform in self.transforms:
            m_hat, m = transform(y_hat), transform(y)
            total = total + F.l1_loss(m_hat.log(), m.log()) + (m - m_hat).norm() / m.norm()
        return total * self.scale


def make_batches(cfg, n):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        mel = torch.randn(cfg.batch_size, 8, cfg.sample_len // 16, generator=g)
        wav = torch.randn(cfg.batch_size, cfg.sample_len, generator=g) * 0.1
        yield mel, wav


class VocoderTrainer:
    def __init__(self, cfg, device):
        self.device = device
        self.model = Generator().to(device)
        self.criterion = MultiResolutionLoss(cfg.resolutions).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def format_batch(self, batch):
        return tuple(t.to(self.device, non_blocking=True) for t in batch)

    def train_step(self, batch):
        mel, wav = self.format_batch(batch)
        loss = self.criterion(self.model(mel), wav)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    cfg = STFTConfig()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = VocoderTrainer(cfg, device)
    losses = [trainer.train_step(b) for b in make_batches(cfg, 2)]
    print("loss", sum(losses) / len(losses))


if __name__ == "__main__":
    main()
