# source: Emmi-AI/noether#156
# mechanism: denormalization of predictions on the GPU uses shift and scale vectors that a normalizer made on the CPU
# expect: raises
from typing import Dict, Sequence

import torch
from torch import nn

STATS = {
    "pressure": {"mean": [-20.0], "std": [30.0]},
    "velocity": {"mean": [15.0, 0.0, 0.2], "std": [8.0, 3.0, 2.5]},
}


class ShiftScale:
    def __init__(self, shift: Sequence[float], scale: Sequence[float]):
        self.shift = torch.tensor(shift)
        self.scale = torch.tensor(scale)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return (x + self.shift) * self.scale

    def denormalize(self, x: torch.Tensor) -> torch.Tensor:
        return x / self.scale - self.shift  # RAISE # ROOT


class MeanStd(ShiftScale):
    def __init__(self, mean: Sequence[float], std: Sequence[float]):
        super().__init__([-m for m in mean], [1.0 / s for s in std])


class FlowDataset:
    def __init__(self, n: int, points: int, normalizers: Dict[str, ShiftScale]):
        gen = torch.Generator().manual_seed(5)
        self.normalizers = normalizers
        self.samples = []
        for _ in range(n):
            self.samples.append({
                "position": torch.rand(points, 3, generator=gen),
                "pressure": torch.randn(points, 1, generator=gen) * 30 - 20,
                "velocity": torch.randn(points, 3, generator=gen) * 4,
            })

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, i):
        sample = dict(self.samples[i])
        for name, normalizer in self.normalizers.items():
            sample[name] = normalizer(sample[name])
        return sample


def collate(samples):
    return {k: torch.stack([s[k] for s in samples]) for k in samples[0]}


class PointModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(3, 16), nn.GELU())
        self.heads = nn.ModuleDict({"pressure": nn.Linear(16, 1), "velocity": nn.Linear(16, 3)})

    def forward(self, position):
        h = self.trunk(position)
        return {name: head(h) for name, head in self.heads.items()}


class SurfaceErrorCallback:
    def __init__(self, normalizers):
        self.normalizers = normalizers
        self.totals = {}

    def process(self, outputs, batch):
        for name, value in outputs.items():
            pred = self.normalizers[name].denormalize(value)
            target = self.normalizers[name].denormalize(batch[name])
            self.totals.setdefault(name, []).append((pred - target).abs().mean().item())

    def summary(self):
        return {name: sum(v) / len(v) for name, v in self.totals.items()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    normalizers = {name: MeanStd(s["mean"], s["std"]) for name, s in STATS.items()}
    data = FlowDataset(4, 10, normalizers)
    model = PointModel().to(device)
    callback = SurfaceErrorCallback(normalizers)
    with torch.no_grad():
        for start in range(0, len(data), 2):
            batch = collate([data[i] for i in range(start, start + 2)])
            batch = {k: v.to(device) for k, v in batch.items()}
            callback.process(model(batch["position"]), batch)
    print(callback.summary())


if __name__ == "__main__":
    main()
