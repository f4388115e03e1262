# source: Lightning-AI/torchmetrics#608
# mechanism: the metric object created for the epoch keeps its state on the host while it is updated with predictions from the GPU
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Metric:
    def __init__(self):
        self._defaults = {}
        self._device = torch.device("cpu")

    def add_state(self, name, default):
        self._defaults[name] = default
        setattr(self, name, default.clone())

    def to(self, device):
        self._device = torch.device(device)
        for name in self._defaults:
            setattr(self, name, getattr(self, name).to(device))
        return self

    def reset(self):
        for name, value in self._defaults.items():
            setattr(self, name, value.clone().to(self._device))


class PerClassAccuracy(Metric):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.add_state("correct", torch.zeros(classes))
        self.add_state("total", torch.zeros(classes))

    def update(self, scores, target):
        hit = (scores.argmax(-1) == target).float()
        shown = nn.functional.one_hot(target, self.classes).float()
        self.total += shown.sum(0)  # RAISE
        self.correct += (shown * hit[:, None]).sum(0)

    def compute(self):
        return (self.correct / self.total.clamp(min=1)).mean()


def build_metrics(classes):
    return {"accuracy": PerClassAccuracy(classes)}  # ALSO


class Ranker(nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(features, 16), nn.Tanh(), nn.Linear(16, classes))

    def forward(self, x):
        return self.net(x)


def train_loop(epoch, loader, model, loss_fn, optim, classes, device="cuda"):
    model.train()
    metrics = build_metrics(classes)  # ROOT
    running = 0.0
    for features, label in loader:
        features, label = features.to(device).float(), label.to(device).long()
        scores = model(features)
        loss = loss_fn(scores, label)
        optim.zero_grad()
        loss.backward()
        optim.step()
        running += loss.item()
        for metric in metrics.values():
            metric.update(scores.softmax(-1).detach(), label)  # ALSO
    return running / len(loader), {k: m.compute().item() for k, m in metrics.items()}


def make_loader(n=24, features=6, classes=3):
    gen = torch.Generator().manual_seed(3)
    return DataLoader(TensorDataset(torch.randn(n, features, generator=gen), torch.randint(0, classes, (n,), generator=gen)), batch_size=8)


def main():
    torch.manual_seed(0)
    model = Ranker(6, 3).to("cuda")
    optim = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for epoch in range(2):
        print(epoch, train_loop(epoch, make_loader(), model, nn.CrossEntropyLoss(), optim, 3))


if __name__ == "__main__":
    main()
