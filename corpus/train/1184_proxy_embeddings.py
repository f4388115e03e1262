# source: KevinMusgrave/pytorch-metric-learning#139
# mechanism: a trainer moves its models and batches, but a loss with parameters of its own stays where it was made
# expect: raises
import math

import torch
from torch import nn
from torch.nn import functional as F


class TripletLoss(nn.Module):
    def __init__(self, margin=0.2):
        super().__init__()
        self.margin = margin

    def forward(self, embeddings, labels):
        distance = torch.cdist(embeddings, embeddings)
        same = labels[:, None] == labels[None]
        positive = distance.masked_fill(~same, 0).amax(1)
        negative = distance.masked_fill(same, math.inf).amin(1)
        return (positive - negative.clamp(max=10) + self.margin).relu().mean()


class ProxyAnchorLoss(nn.Module):
    def __init__(self, num_classes, embedding_size, margin=0.1, alpha=32):
        super().__init__()
        self.proxies = nn.Parameter(torch.randn(num_classes, embedding_size))
        self.num_classes = num_classes
        self.margin = margin
        self.alpha = alpha

    def forward(self, embeddings, labels):
        proxies = F.normalize(self.proxies, dim=1)  # ROOT
        cosine = F.linear(F.normalize(embeddings, dim=1), proxies)  # RAISE # ALSO
        positive = F.one_hot(labels, self.num_classes).bool()
        pos = torch.where(positive, -self.alpha * (cosine - self.margin), torch.full_like(cosine, -math.inf))
        neg = torch.where(positive, torch.full_like(cosine, -math.inf), self.alpha * (cosine + self.margin))
        pos_term = F.softplus(torch.logsumexp(pos, 0))
        neg_term = F.softplus(torch.logsumexp(neg, 0))
        return (pos_term.sum() + neg_term.sum()) / self.num_classes


class Trunk(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.conv = nn.Conv2d(3, width, 3, stride=2)

    def forward(self, x):
        return self.conv(x).relu().mean((2, 3))


class MetricTrainer:
    def __init__(self, models, optimizers, batches, loss_funcs, loss_weights=None, device=None):
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.models = {name: model.to(self.device) for name, model in models.items()}
        self.optimizers = optimizers
        self.batches = batches
        self.loss_funcs = loss_funcs  # ALSO
        self.loss_weights = loss_weights or {name: 1.0 for name in loss_funcs}

    def compute_embeddings(self, images):
        return self.models["embedder"](self.models["trunk"](images))

    def train_one_batch(self, images, labels):
        images, labels = images.to(self.device), labels.to(self.device)
        embeddings = self.compute_embeddings(images)
        losses = {name: loss(embeddings, labels) for name, loss in self.loss_funcs.items()}
        total = sum(self.loss_weights[name] * value for name, value in losses.items())
        for optimizer in self.optimizers:
            optimizer.zero_grad()
        total.backward()
        for optimizer in self.optimizers:
            optimizer.step()
        return {name: value.item() for name, value in losses.items()}

    def train(self, epochs):
        for _ in range(epochs):
            for batch in self.batches:
                values = self.train_one_batch(*batch)
                print({name: round(value, 4) for name, value in values.items()})


def make_batches(count, classes):
    gen = torch.Generator().manual_seed(1)
    return [
        (torch.rand(8, 3, 12, 12, generator=gen), torch.arange(8) % classes) for _ in range(count)
    ]


def main():
    torch.manual_seed(0)
    classes = 4
    models = {"trunk": Trunk(), "embedder": nn.Linear(8, 6)}
    batches = make_batches(2, classes)
    network = torch.optim.Adam([p for m in models.values() for p in m.parameters()], lr=1e-3)
    MetricTrainer(models, [network], batches, {"triplet": TripletLoss()}).train(1)
    proxy_loss = ProxyAnchorLoss(classes, 6)  # ALSO
    proxy = torch.optim.Adam(proxy_loss.parameters(), lr=1e-2)
    MetricTrainer(models, [network, proxy], batches, {"triplet": TripletLoss(), "proxy": proxy_loss}).train(1)


if __name__ == "__main__":
    main()
