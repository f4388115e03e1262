# source: pytorch/ignite#1232
# mechanism: a metric's device defaults to None, so its accumulator is made on the CPU while moving each update to that device does nothing
# expect: raises
import torch
from torch import nn


class Metric:
    def __init__(self, device=None):  # ROOT
        self._device = torch.device(device) if isinstance(device, str) else device  # ALSO
        self.reset()

    def attach(self, engine, name):
        engine.started.append(self.reset)
        engine.iterated.append(self.update)
        engine.completed[name] = self.compute


class Accuracy(Metric):
    def reset(self):
        self._hits, self._total = 0, 0

    def update(self, output):
        pred, target = output
        self._hits += (pred.argmax(1) == target).sum().item()
        self._total += target.numel()

    def compute(self):
        return self._hits / self._total


class ClassRecall(Metric):
    def __init__(self, num_classes, **kwargs):
        self.num_classes = num_classes
        super().__init__(**kwargs)

    def reset(self):
        self._true_positive = torch.zeros(self.num_classes, device=self._device)
        self._positive = torch.zeros(self.num_classes, device=self._device)

    def update(self, output):
        pred, target = output
        onehot = nn.functional.one_hot(target, self.num_classes).float()
        guess = nn.functional.one_hot(pred.argmax(1), self.num_classes).float()
        self._positive += onehot.sum(0).to(self._device)  # RAISE
        self._true_positive += (onehot * guess).sum(0).to(self._device)

    def compute(self):
        recall = self._true_positive / self._positive.clamp(min=1)
        return recall.mean().item()


class Engine:
    def __init__(self, process):
        self.process = process
        self.started, self.iterated, self.completed = [], [], {}

    def run(self, data):
        for handler in self.started:
            handler()
        for batch in data:
            output = self.process(batch)
            for handler in self.iterated:
                handler(output)
        return {name: fn() for name, fn in self.completed.items()}


def create_evaluator(model, metrics, device):
    model.to(device)

    def step(batch):
        model.eval()
        with torch.no_grad():
            x, y = (t.to(device) for t in batch)
            return model(x), y

    engine = Engine(step)
    for name, metric in metrics.items():
        metric.attach(engine, name)
    return engine


def main():
    torch.manual_seed(3)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = nn.Sequential(nn.Linear(5, 12), nn.Tanh(), nn.Linear(12, 4))
    metrics = {"accuracy": Accuracy(), "recall": ClassRecall(4)}  # ALSO
    evaluator = create_evaluator(model, metrics, device)
    data = [(torch.randn(6, 5), torch.randint(0, 4, (6,))) for _ in range(3)]
    print(evaluator.run(data))


if __name__ == "__main__":
    main()
