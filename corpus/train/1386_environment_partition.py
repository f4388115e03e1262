# source: PanasonicConnect/InvReg#1
# mechanism: a data set in host memory is split by indices that come out of a partition learned on the GPU
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn
import torch.nn.functional as F


@dataclass
class PartitionConfig:
    envs: int = 2
    steps: int = 5
    lr: float = 0.5
    temperature: float = 0.3


class FaceSet:
    def __init__(self, n=24, dim=6, classes=3):
        gen = torch.Generator().manual_seed(9)
        self.images = torch.randn(n, dim, generator=gen)
        self.labels = torch.randint(0, classes, (n,), generator=gen)

    def __len__(self):
        return len(self.labels)

    def subset(self, indices):
        return self.images[indices], self.labels[indices]  # RAISE # ALSO

    def batches(self, size):
        for start in range(0, len(self), size):
            yield self.images[start:start + size], self.labels[start:start + size]


class Embedder(nn.Module):
    def __init__(self, dim=6, width=8, classes=3):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(dim, width), nn.ReLU())
        self.head = nn.Linear(width, classes)

    def forward(self, x):
        feature = self.body(x)
        return feature, self.head(feature)


@torch.no_grad()
def extract(model, dataset, device):
    features, labels = [], []
    for images, target in dataset.batches(8):
        features.append(model(images.to(device))[0])
        labels.append(target.to(device))
    return torch.cat(features), torch.cat(labels)


def irm_penalty(logits, labels, weights):
    scale = torch.ones(1, device=logits.device, requires_grad=True)
    loss = (F.cross_entropy(logits * scale, labels, reduction="none") * weights).mean()
    (grad,) = torch.autograd.grad(loss, [scale], create_graph=True)
    return grad.pow(2).sum()


def learn_partition(model, dataset, cfg, device):
    features, labels = extract(model, dataset, device)
    logits = model.head(features).detach()
    assignment = nn.Parameter(torch.randn(len(dataset), cfg.envs, device=device))
    optimizer = torch.optim.Adam([assignment], lr=cfg.lr)
    for _ in range(cfg.steps):
        soft = F.softmax(assignment / cfg.temperature, dim=1)
        penalty = sum(irm_penalty(logits, labels, soft[:, e]) for e in range(cfg.envs))
        optimizer.zero_grad()
        (-penalty).backward()
        optimizer.step()
    hard = assignment.detach().argmax(dim=1)  # ROOT
    return [torch.nonzero(hard == e).flatten() for e in range(cfg.envs)]  # ALSO


def train_with_partition(model, dataset, partition, device, weight=0.1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = torch.zeros((), device=device)
    for indices in partition:
        if len(indices) == 0:
            continue
        images, labels = dataset.subset(indices)  # ALSO
        images, labels = images.to(device), labels.to(device)
        _, logits = model(images)
        ones = torch.ones(len(labels), device=device)
        total = total + F.cross_entropy(logits, labels) + weight * irm_penalty(logits, labels, ones)
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
    return total.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    dataset, model = FaceSet(), Embedder().to(device)
    for _ in range(2):
        partition = learn_partition(model, dataset, PartitionConfig(), device)
        print("loss %.3f" % train_with_partition(model, dataset, partition, device))


if __name__ == "__main__":
    main()
