# source: pytorch/ignite#554
# mechanism: an accumulator is cast by the name of another tensor's type, which puts it on the default GPU while the data is on the second one
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Metric:
    def __init__(self, output_transform=lambda x: x):
        self._output_transform = output_transform
        self.reset()

    def iteration_completed(self, output):
        self.update(self._output_transform(output))


class Loss(Metric):
    def reset(self):
        self._sum, self._n = 0.0, 0

    def update(self, output):
        y_pred, y = output
        self._sum += nn.functional.cross_entropy(y_pred, y).item() * len(y)
        self._n += len(y)

    def compute(self):
        return self._sum / self._n


class ConfusionMatrix(Metric):
    def __init__(self, num_classes, **kwargs):
        self.num_classes = num_classes
        super().__init__(**kwargs)

    def reset(self):
        self.matrix = torch.zeros(self.num_classes, self.num_classes, dtype=torch.float)
        self._num_examples = 0

    def update(self, output):
        y_pred, y = output
        self._num_examples += y_pred.shape[0]
        indices = y * self.num_classes + y_pred.argmax(dim=1)
        counts = torch.bincount(indices, minlength=self.num_classes ** 2)
        counts = counts.reshape(self.num_classes, self.num_classes).float()
        self.matrix = self.matrix.type(counts.type())  # ROOT
        self.matrix += counts  # RAISE # ALSO

    def compute(self):
        return (self.matrix / self._num_examples).cpu()


class Evaluator:
    def __init__(self, model, device):
        self.model, self.device = model, device
        self.metrics = {}

    def attach(self, name, metric):
        self.metrics[name] = metric
        return self

    @torch.no_grad()
    def run(self, loader):
        self.model.eval()
        for metric in self.metrics.values():
            metric.reset()
        for x, y in loader:
            x, y = x.to(self.device), y.to(self.device)
            output = (self.model(x), y)
            for metric in self.metrics.values():
                metric.iteration_completed(output)
        return {name: m.compute() for name, m in self.metrics.items()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:1" if torch.cuda.device_count() > 1 else "cpu")
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).to(device)
    data = TensorDataset(torch.randn(20, 6), torch.randint(0, 3, (20,)))
    evaluator = Evaluator(model, device)
    evaluator.attach("loss", Loss()).attach("cm", ConfusionMatrix(3))
    print(evaluator.run(DataLoader(data, batch_size=5)))


if __name__ == "__main__":
    main()
