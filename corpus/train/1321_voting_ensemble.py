# source: TorchEnsemble-Community/Ensemble-Pytorch#160
# mechanism: the estimators of an ensemble are spread over several devices, and the average sums their outputs where each of them was made
# expect: raises
# needs: 2 GPUs
import itertools

import torch
import torch.nn.functional as F
from torch import nn


class MLP(nn.Module):
    def __init__(self, features, classes, hidden=8):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, hidden), nn.ReLU(), nn.Linear(hidden, classes))

    def forward(self, x):
        return self.layers(x)


def average(outputs):
    return sum(outputs) / len(outputs)  # RAISE # ALSO


class VotingClassifier(nn.Module):
    def __init__(self, build, n_estimators, devices):
        super().__init__()
        self.build = build
        self.n_estimators = n_estimators
        self.devices = [torch.device(d) for d in devices]
        self.estimators_ = nn.ModuleList()

    @property
    def output_device(self):
        return self.devices[0]

    def _fit_one(self, estimator, loader, device, epochs, lr):
        optimizer = torch.optim.Adam(estimator.parameters(), lr=lr)
        estimator.train()
        for _ in range(epochs):
            for data, target in loader:
                output = estimator(data.to(device))
                loss = F.cross_entropy(output, target.to(device))
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()

    def fit(self, loader, epochs=1, lr=1e-2):
        losses = []
        for _, device in zip(range(self.n_estimators), itertools.cycle(self.devices)):
            estimator = self.build().to(device)
            losses.append(self._fit_one(estimator, loader, device, epochs, lr))
            self.estimators_.append(estimator)
        return losses

    def forward(self, x):
        outputs = []
        for estimator in self.estimators_:
            device = next(estimator.parameters()).device
            outputs.append(F.softmax(estimator(x.to(device)), dim=1))  # ROOT
        return average(outputs)  # ALSO

    @torch.no_grad()
    def evaluate(self, loader):
        self.eval()
        correct, total = 0, 0
        for data, target in loader:
            predicted = self(data).argmax(1)
            correct += int((predicted.cpu() == target).sum())
            total += target.size(0)
        return correct / total


def make_loader(batches, seed):
    generator = torch.Generator().manual_seed(seed)
    loader = []
    for _ in range(batches):
        data = torch.randn(8, 4, generator=generator)
        loader.append((data, (data.sum(1) > 0).long()))
    return loader


def run(devices):
    torch.manual_seed(0)
    model = VotingClassifier(lambda: MLP(4, 2), n_estimators=3, devices=devices)
    losses = model.fit(make_loader(3, 0), epochs=2)
    return losses, model.evaluate(make_loader(2, 1))


def main():
    for devices in (["cpu"], ["cuda:0"], ["cuda:0", "cuda:1"]):
        losses, accuracy = run(devices)
        print(devices, [round(v, 3) for v in losses], accuracy)


if __name__ == "__main__":
    main()
