# source: Spijkervet/torchaudio-augmentations#8
# mechanism: a delay effect prepends silence that is made on the CPU to a signal on the GPU
# expect: raises
import random

import torch
from torch import nn


class Compose:
    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, audio):
        for transform in self.transforms:
            audio = transform(audio)
        return audio


class RandomApply:
    def __init__(self, transform, p):
        self.transform, self.p = transform, p

    def __call__(self, audio):
        return self.transform(audio) if random.random() < self.p else audio


class Noise:
    def __init__(self, max_std=0.05):
        self.max_std = max_std

    def __call__(self, audio):
        return audio + random.random() * self.max_std * torch.randn_like(audio)


class PolarityInversion:
    def __call__(self, audio):
        return torch.neg(audio)


class Delay:
    def __init__(self, sample_rate, volume_factor=0.5, min_delay=200, max_delay=500, step=50):
        self.sample_rate = sample_rate
        self.volume_factor = volume_factor
        self.choices = list(range(min_delay, max_delay, step))

    def calc_offset(self, ms):
        return int(ms * self.sample_rate / 1000)

    def __call__(self, audio):
        offset = self.calc_offset(random.choice(self.choices))
        beginning = torch.zeros(audio.shape[0], offset)  # ROOT
        end = audio[:, :-offset]
        delayed = torch.cat((beginning, end), dim=1)  # RAISE # ALSO
        return (audio + delayed * self.volume_factor) / (1 + self.volume_factor)


class ManyViews:
    def __init__(self, transform, views=2):
        self.transform, self.views = transform, views

    def __call__(self, batch):
        return torch.stack([self.transform(batch) for _ in range(self.views)])


class Encoder(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.conv = nn.Conv1d(1, dim, 5, stride=2)
        self.proj = nn.Linear(dim, dim)

    def forward(self, audio):
        h = torch.relu(self.conv(audio.unsqueeze(1))).mean(-1)
        return nn.functional.normalize(self.proj(h), dim=-1)


def nt_xent(a, b, temperature=0.5):
    logits = a @ b.t() / temperature
    labels = torch.arange(len(a), device=a.device)
    return nn.functional.cross_entropy(logits, labels)


class ContrastiveTrainer:
    def __init__(self, device, sample_rate=64):
        self.device = device
        self.encoder = Encoder().to(device)
        self.optimizer = torch.optim.Adam(self.encoder.parameters(), lr=1e-3)
        chain = Compose([RandomApply(PolarityInversion(), 0.8), Noise(), RandomApply(Delay(sample_rate), 1.0)])
        self.views = ManyViews(chain)

    def step(self, batch):
        audio = batch.to(self.device, non_blocking=True)
        first, second = self.views(audio)
        loss = nt_xent(self.encoder(first), self.encoder(second))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    random.seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    trainer = ContrastiveTrainer(device)
    for _ in range(2):
        loss = trainer.step(torch.randn(4, 64))
    print("loss %.3f" % loss)


if __name__ == "__main__":
    main()
