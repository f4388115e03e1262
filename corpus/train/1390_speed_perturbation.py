# source: speechbrain/speechbrain#993
# mechanism: a resampler makes its filter weights on the device of its first input and keeps them, and then gets waveforms on another GPU
# expect: raises
# needs: 2 GPUs
import math
import random

import torch
from torch import nn


class Resample(nn.Module):
    def __init__(self, orig_freq, new_freq, width=4):
        super().__init__()
        gcd = math.gcd(orig_freq, new_freq)
        self.orig, self.new = orig_freq // gcd, new_freq // gcd
        self.width = width
        self.weights = None

    def _make_weights(self, waveforms):
        times = torch.arange(self.new, device=waveforms.device).float() * self.orig / self.new
        taps = torch.arange(-self.width, self.orig + self.width, device=waveforms.device).float()
        delta = taps[None, :] - times[:, None]
        window = torch.cos(delta / self.width * math.pi / 2).clamp(min=0) ** 2
        return torch.sinc(delta) * window

    def forward(self, waveforms):
        if self.orig == self.new:
            return waveforms
        if self.weights is None:  # ALSO
            self.weights = self._make_weights(waveforms)
        return self._perform_resample(waveforms)

    def _perform_resample(self, waveforms):
        padded = nn.functional.pad(waveforms, (self.width, self.width))
        frames = padded.unfold(-1, self.orig + 2 * self.width, self.orig)
        weights = self.weights  # ROOT
        return torch.matmul(frames, weights.t()).flatten(-2)  # RAISE # ALSO


class SpeedPerturb(nn.Module):
    def __init__(self, freq=20, speeds=(0.8, 1.25)):
        super().__init__()
        self.resamplers = nn.ModuleList(Resample(freq, int(freq / s)) for s in speeds)

    def forward(self, waveforms):
        return random.choice(self.resamplers)(waveforms)


class SpecAugment(nn.Module):
    def __init__(self, max_drop=6):
        super().__init__()
        self.speed = SpeedPerturb()
        self.max_drop = max_drop

    @torch.no_grad()
    def forward(self, waveforms):
        out = self.speed(waveforms).clone()
        start = random.randint(0, out.shape[-1] - self.max_drop)
        out[:, start:start + random.randint(1, self.max_drop)] = 0.0
        return out


class Recognizer(nn.Module):
    def __init__(self, tokens=5):
        super().__init__()
        self.conv = nn.Conv1d(1, 6, 5, stride=3)
        self.out = nn.Linear(6, tokens)

    def forward(self, waveforms):
        return self.out(torch.relu(self.conv(waveforms.unsqueeze(1))).mean(-1))


class ReplicaTrainer:
    def __init__(self, devices):
        self.devices = devices
        self.augment = SpecAugment()
        self.replicas = [Recognizer().to(d) for d in devices]
        for replica in self.replicas[1:]:
            replica.load_state_dict(self.replicas[0].state_dict())

    def step(self, waveforms, labels):
        losses = []
        chunks = zip(waveforms.chunk(len(self.devices)), labels.chunk(len(self.devices)))
        for replica, device, (wav, lab) in zip(self.replicas, self.devices, chunks):
            logits = replica(self.augment(wav.to(device)))
            loss = nn.functional.cross_entropy(logits, lab.to(device))
            loss.backward()
            losses.append(loss.item())
        self.average_gradients()
        return sum(losses) / len(losses)

    def average_gradients(self, lr=0.1):
        for group in zip(*(r.parameters() for r in self.replicas)):
            grad = torch.stack([p.grad.to(self.devices[0]) for p in group]).mean(0)
            for p in group:
                p.data.add_(grad.to(p.device), alpha=-lr)
                p.grad = None


def main():
    torch.manual_seed(0)
    random.seed(1)
    trainer = ReplicaTrainer([torch.device("cuda:0"), torch.device("cuda:1")])
    for _ in range(4):
        loss = trainer.step(torch.randn(4, 60), torch.randint(0, 5, (4,)))
    print("loss %.3f" % loss)


if __name__ == "__main__":
    main()
