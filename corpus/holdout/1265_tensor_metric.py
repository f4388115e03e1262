# source: Lightning-AI/pytorch-lightning#2274
# mechanism: a metric base class converts results to its own stored device, a CPU that no move of the module ever updates
# expect: raises
import torch
from torch import nn


class TensorMetric(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.name = name
        self._dtype = torch.float32
        self._device = torch.device("cpu")

    def metric(self, pred, target):
        raise NotImplementedError

    def convert_output(self, value):
        if not torch.is_tensor(value):
            value = torch.as_tensor(value)
        return value.to(device=self._device, dtype=self._dtype)  # ROOT

    def forward(self, pred, target):
        return self.convert_output(self.metric(pred, target))


class Dice(TensorMetric):
    def __init__(self):
        super().__init__("dice")

    def metric(self, pred, target):
        overlap = (pred * target).flatten(1).sum(1)
        return (2 * overlap + 1) / (pred.flatten(1).sum(1) + target.flatten(1).sum(1) + 1)


class FocalTversky(TensorMetric):
    def __init__(self, alpha=0.3, beta=0.7, gamma=0.75):
        super().__init__("focal_tversky")
        self.alpha, self.beta, self.gamma = alpha, beta, gamma

    def metric(self, pred, target):
        tp = (pred * target).flatten(1).sum(1)
        fp = (pred * (1 - target)).flatten(1).sum(1)
        fn = ((1 - pred) * target).flatten(1).sum(1)
        index = (tp + 1) / (tp + self.alpha * fp + self.beta * fn + 1)
        return (1 - index) ** self.gamma


class SegmentationTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(1, 1, 3, padding=1)
        self.dice = Dice()
        self.tversky = FocalTversky()

    def training_step(self, batch):
        x, y = batch
        prob = torch.sigmoid(self.net(x))
        bce = nn.functional.binary_cross_entropy(prob, y, reduction="none").flatten(1).mean(1)
        per_sample = bce + self.tversky(prob, y)  # RAISE
        return {"loss": per_sample.mean(), "log": {"dice": self.dice(prob, y).mean()}}


class Trainer:
    def __init__(self, gpus=0, max_steps=2):
        self.root = torch.device("cuda", 0) if gpus and torch.cuda.is_available() else torch.device("cpu")
        self.max_steps = max_steps

    def transfer(self, batch):
        return tuple(t.to(self.root) for t in batch)

    def fit(self, task, loader):
        task.to(self.root)
        optimizer = torch.optim.Adam(task.parameters(), lr=1e-3)
        logs = []
        for _, batch in zip(range(self.max_steps), loader):
            out = task.training_step(self.transfer(batch))
            optimizer.zero_grad()
            out["loss"].backward()
            optimizer.step()
            logs.append(out["log"]["dice"].item())
        return logs


def main():
    torch.manual_seed(0)
    loader = [(torch.randn(2, 1, 6, 6), (torch.rand(2, 1, 6, 6) > 0.5).float()) for _ in range(2)]
    print(Trainer(gpus=1).fit(SegmentationTask(), loader))


if __name__ == "__main__":
    main()
