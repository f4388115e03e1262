# source: Lightning-AI/pytorch-lightning#18580, fix PR#18582
# mechanism: the loaders of each cross-validation fold are not passed through Fabric's setup_dataloaders, so their batches stay on the CPU
import logging
import torch
import torch.nn as nn
import torch.nn.functional as F
from lightning.fabric import Fabric, seed_everything
from torch.utils.data import DataLoader, SubsetRandomSampler, TensorDataset
from torchmetrics.classification import MulticlassAccuracy

logging.getLogger("lightning").setLevel(logging.ERROR)


class Net(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 8, 3)
        self.fc = nn.Linear(8 * 4 * 4, classes)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return F.log_softmax(self.fc(x.flatten(1)), dim=1)


def train_epoch(fabric, loader, model, optimizer):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        fabric.backward(loss)
        optimizer.step()


@torch.no_grad()
def validate(fabric, loader, model, acc):
    model.eval()
    for data, target in loader:
        acc(model(data), target)
    value = fabric.all_gather(acc.compute())
    acc.reset()
    return value.mean().item()


def split(size, folds):
    parts = torch.randperm(size).chunk(folds)
    return [(torch.cat(parts[:k] + parts[k + 1:]).tolist(), parts[k].tolist()) for k in range(folds)]


def run(folds=3, epochs=1, batch_size=8, lr=0.5):
    fabric = Fabric(accelerator="cuda", devices=1)
    seed_everything(3, verbose=False)
    dataset = TensorDataset(torch.rand(36, 1, 8, 8), torch.arange(36) % 4)
    models = [Net() for _ in range(folds)]
    optimizers = [torch.optim.Adadelta(m.parameters(), lr=lr) for m in models]
    for i in range(folds):
        models[i], optimizers[i] = fabric.setup(models[i], optimizers[i])
    acc = MulticlassAccuracy(num_classes=4).to(fabric.device)
    scores = []
    for epoch in range(epochs):
        for fold, ids in enumerate(split(len(dataset), folds)):
            train_loader, val_loader = (DataLoader(dataset, batch_size=batch_size, sampler=SubsetRandomSampler(s)) for s in ids)  # ROOT
            train_epoch(fabric, train_loader, models[fold], optimizers[fold])
            scores.append(validate(fabric, val_loader, models[fold], acc))
    return sum(scores) / len(scores)


print(run())
