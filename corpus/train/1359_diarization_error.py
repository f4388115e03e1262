# source: pyannote/pyannote-audio#961
# mechanism: a metric turns its scalar threshold into a tensor of one element on the CPU and compares predictions on the GPU with it
# expect: raises
from itertools import permutations
from typing import Optional, Union

import torch
from torch import nn


def permutate(target, preds):
    best, best_cost = None, None
    for order in permutations(range(preds.shape[1])):
        candidate = preds[:, list(order)]
        cost = (candidate - target).pow(2).mean()
        if best_cost is None or cost < best_cost:
            best, best_cost = candidate, cost
    return best


def der_update(preds, target, threshold: Union[float, torch.Tensor] = 0.5):
    if isinstance(threshold, float):
        threshold = torch.tensor([threshold], dtype=preds.dtype)  # ROOT
    aligned = torch.stack([permutate(t.T, p.T).T for p, t in zip(preds, target)])
    hypothesis = (aligned.unsqueeze(-1) > threshold).float()  # RAISE # ALSO
    target = target.unsqueeze(-1)
    detection = hypothesis.sum(1) - target.sum(1)
    false_alarm = torch.clamp(detection, min=0)
    missed = torch.clamp(-detection, min=0)
    confusion = torch.sum((hypothesis != target) * hypothesis, dim=1) - false_alarm
    return [v.sum(dim=(0, 1)) for v in (false_alarm, missed, confusion, target.sum(1))]


class DiarizationErrorRate(nn.Module):
    def __init__(self, threshold: Optional[float] = 0.5):
        super().__init__()
        self.threshold = threshold
        for name in ("false_alarm", "missed", "confusion", "total"):
            self.register_buffer(name, torch.zeros(1))

    def reset(self):
        for buffer in self.buffers():
            buffer.zero_()

    def update(self, preds, target):
        parts = der_update(preds, target, self.threshold)
        for name, value in zip(("false_alarm", "missed", "confusion", "total"), parts):
            getattr(self, name).add_(value)

    def compute(self):
        return (self.false_alarm + self.missed + self.confusion) / (self.total + 1e-8)


class Segmentation(nn.Module):
    def __init__(self, speakers=2, hidden=8):
        super().__init__()
        self.rnn = nn.GRU(4, hidden, batch_first=True)
        self.out = nn.Linear(hidden, speakers)
        self.validation_metric = DiarizationErrorRate()

    def forward(self, features):
        h, _ = self.rnn(features)
        return torch.sigmoid(self.out(h)).transpose(1, 2)


@torch.no_grad()
def validate(model, batches, device):
    model.eval()
    model.validation_metric.reset()
    for features, target in batches:
        preds = model(features.to(device))
        model.validation_metric.update(preds, target.to(device))
    return model.validation_metric.compute().item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = Segmentation().to(device)
    batches = [(torch.randn(2, 7, 4), torch.randint(0, 2, (2, 2, 7)).float()) for _ in range(2)]
    print("DER %.3f" % validate(model, batches, device))


if __name__ == "__main__":
    main()
