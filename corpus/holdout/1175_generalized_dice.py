# source: Project-MONAI/MONAI#5919
# mechanism: a metric fills in scores of empty classes from tensors that are made on the CPU
# expect: raises
import torch
from torch import nn


def ignore_background(y_pred, y):
    return y_pred[:, 1:], y[:, 1:]


def compute_generalized_dice(y_pred, y, include_background=True, weight_type="square"):
    if not include_background:
        y_pred, y = ignore_background(y_pred, y)
    dims = list(range(2, y_pred.dim()))
    intersection = (y * y_pred).sum(dims)
    y_o, y_pred_o = y.sum(dims), y_pred.sum(dims)
    denominator = y_o + y_pred_o
    if weight_type == "square":
        w = 1.0 / (y_o * y_o)
    elif weight_type == "simple":
        w = 1.0 / y_o
    else:
        w = torch.ones_like(y_o)
    infinite = torch.isinf(w)
    w = torch.where(infinite, torch.zeros_like(w), w)
    numer = 2.0 * (intersection * w).sum(1)
    denom = (denominator * w).sum(1)
    score = numer / denom
    one, zero = torch.ones(1), torch.zeros(1)  # ROOT
    nothing_predicted = y_pred_o.sum(1) == 0
    return torch.where(denom == 0, torch.where(nothing_predicted, one, zero), score)  # RAISE # ALSO


class CumulativeMetric:
    def __init__(self):
        self.buffer = []

    def compute(self, y_pred, y):
        raise NotImplementedError

    def __call__(self, y_pred, y):
        value = self.compute(y_pred, y)
        self.buffer.append(value)
        return value

    def aggregate(self):
        return torch.cat(self.buffer).mean()

    def reset(self):
        self.buffer = []


class MeanDice(CumulativeMetric):
    def compute(self, y_pred, y):
        dims = list(range(2, y_pred.dim()))
        overlap = 2 * (y_pred * y).sum(dims)
        total = y_pred.sum(dims) + y.sum(dims)
        return torch.where(total > 0, overlap / total.clamp(min=1), torch.ones_like(total)).mean(1)


class GeneralizedDiceScore(CumulativeMetric):
    def __init__(self, include_background=True, weight_type="square"):
        super().__init__()
        self.include_background = include_background
        self.weight_type = weight_type

    def compute(self, y_pred, y):
        return compute_generalized_dice(y_pred, y, self.include_background, self.weight_type)


class SegNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv3d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv3d(4, classes, 1))

    def forward(self, x):
        return self.conv(x)


def one_hot(labels, classes):
    return nn.functional.one_hot(labels, classes).permute(0, 4, 1, 2, 3).float()


@torch.no_grad()
def evaluate(network, volumes, labels, metrics, classes, device):
    network.eval()
    for volume, label in zip(volumes.split(2), labels.split(2)):
        volume, label = volume.to(device), label.to(device)
        predicted = one_hot(network(volume).argmax(1), classes)
        target = one_hot(label, classes)
        for metric in metrics.values():
            metric(predicted, target)
    return {name: metric.aggregate().item() for name, metric in metrics.items()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    classes = 3
    volumes = torch.rand(4, 1, 6, 6, 6)
    labels = torch.randint(0, classes, (4, 6, 6, 6))
    metrics = {"dice": MeanDice(), "generalized": GeneralizedDiceScore(include_background=False)}
    for name, value in evaluate(SegNet(classes).to(device), volumes, labels, metrics, classes, device).items():
        print(name, round(value, 4))


if __name__ == "__main__":
    main()
