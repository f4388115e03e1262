# source: Lightning-AI/torchmetrics#340
# mechanism: a stateful metric is created inside the validation step, on the CPU, instead of being a submodule that moves with the task
# expect: raises
import torch
from torch import nn
import torch.nn.functional as F


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = default.clone()
        self.register_buffer(name, default)

    def reset(self):
        for name, value in self._defaults.items():
            getattr(self, name).copy_(value)

    def forward(self, preds, target):
        self.update(preds, target)
        return self.compute()


class Accuracy(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("correct", torch.zeros(()))
        self.add_state("total", torch.zeros(()))

    def update(self, preds, target):
        self.correct += (preds == target).sum()
        self.total += target.numel()

    def compute(self):
        return self.correct / self.total


class F1(Metric):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        for name in ("tp", "fp", "fn"):
            self.add_state(name, torch.zeros(num_classes))

    def update(self, preds, target):
        p = F.one_hot(preds, self.num_classes).bool()
        t = F.one_hot(target, self.num_classes).bool()
        self.tp += (p & t).sum(0)  # RAISE
        self.fp += (p & ~t).sum(0)
        self.fn += (~p & t).sum(0)

    def compute(self):
        return (2 * self.tp / (2 * self.tp + self.fp + self.fn).clamp(min=1)).mean()


class ImageClassifier(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(16, 8), nn.ReLU(), nn.Linear(8, num_classes))
        self.accuracy = Accuracy()

    def validation_step(self, batch):
        x, y = batch
        logits = self.net(x)
        preds = logits.argmax(1)
        f1 = F1(num_classes=self.num_classes)  # ROOT
        return {
            "val_loss": F.cross_entropy(logits, y),
            "val_acc": self.accuracy(preds, y),
            "val_f1": f1(preds, y),  # ALSO
        }


def validate(task, loader, device):
    task.to(device).eval()
    rows = []
    with torch.no_grad():
        for batch in loader:
            out = task.validation_step([t.to(device) for t in batch])
            rows.append({k: v.item() for k, v in out.items()})
    return rows[-1]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = [(torch.randn(6, 1, 4, 4), torch.randint(0, 3, (6,))) for _ in range(2)]
    print(validate(ImageClassifier(3), loader, device))


if __name__ == "__main__":
    main()
