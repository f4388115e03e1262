# source: kkirchheim/pytorch-ood#104
# mechanism: a scalar on the CPU accumulates in place the squared gradient norms of parameters on the GPU
# expect: raises
from abc import ABC, abstractmethod
from typing import List

import torch
from torch import nn


class Detector(ABC):
    @abstractmethod
    def predict(self, x: torch.Tensor) -> torch.Tensor:
        ...

    def fit(self, loader, device="cpu"):
        return self


class MaxSoftmax(Detector):
    def __init__(self, model: nn.Module, temperature: float = 1.0):
        self.model = model
        self.t = temperature

    @torch.no_grad()
    def predict(self, x):
        return -torch.softmax(self.model(x) / self.t, dim=1).max(dim=1).values


class GradNorm(Detector):
    def __init__(self, model: nn.Module, param_filter=None, temperature: float = 1.0):
        self.model = model
        self.param_filter = param_filter or (lambda name: True)
        self.t = temperature

    def _parameters(self) -> List[nn.Parameter]:
        return [p for name, p in self.model.named_parameters() if self.param_filter(name)]

    def _score_one(self, sample: torch.Tensor) -> torch.Tensor:
        self.model.zero_grad()
        logits = self.model(sample.unsqueeze(0)) / self.t
        uniform = torch.full_like(logits, 1.0 / logits.shape[1])
        loss = torch.sum(-uniform * torch.log_softmax(logits, dim=1))
        loss.backward()
        total_norm = torch.tensor(0.0)  # ROOT
        for p in self._parameters():
            if p.grad is not None:
                total_norm += torch.sum(p.grad.detach() ** 2)  # RAISE # ALSO
        return total_norm.sqrt()

    def predict(self, x):
        was_training = self.model.training
        self.model.eval()
        scores = torch.stack([self._score_one(sample) for sample in x])
        self.model.train(was_training)
        self.model.zero_grad()
        return -scores


class OODMetrics:
    def __init__(self):
        self.scores, self.labels = [], []

    def update(self, scores, labels):
        self.scores.append(scores.detach().cpu())
        self.labels.append(labels.cpu())

    def compute(self):
        scores, labels = torch.cat(self.scores), torch.cat(self.labels)
        inlier, outlier = scores[labels >= 0], scores[labels < 0]
        wins = (outlier[:, None] > inlier[None]).float().mean()
        return {"AUROC": round(wins.item(), 3)}


def loader(batches=2, size=4):
    for i in range(batches):
        x = torch.randn(size, 6) * (1.0 if i % 2 == 0 else 4.0)
        y = torch.full((size,), 0 if i % 2 == 0 else -1)
        yield x, y


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3)).to(device)
    detectors = {"msp": MaxSoftmax(model), "gradnorm": GradNorm(model, lambda name: name.startswith("2."))}
    for name, detector in detectors.items():
        metrics = OODMetrics()
        for x, y in loader():
            metrics.update(detector.predict(x.to(device)), y)
        print(name, metrics.compute())


if __name__ == "__main__":
    main()
