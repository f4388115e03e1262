# source: fastai/fastai#3247
# mechanism: the corner of a cut-out box is drawn on the CPU and combined with a half width that was computed from a value on the GPU
# expect: raises
import math

import torch
from torch import nn
from torch.distributions import Beta


class Callback:
    learner = None

    def before_batch(self):
        pass

    def after_loss(self):
        pass


class CutMix(Callback):
    def __init__(self, alpha=1.0):
        self.distrib = Beta(torch.tensor(alpha), torch.tensor(alpha))
        self.lam = None

    def rand_bbox(self, size, lam):
        half = torch.sqrt(1.0 - lam) * size / 2  # ALSO
        center = torch.randint(0, size, (2,))  # ROOT
        low = (center - half).round().clamp(0, size)  # RAISE
        high = (center + half).round().clamp(0, size)
        return low.long().tolist(), high.long().tolist()

    def before_batch(self):
        learner = self.learner
        images, labels = learner.xb, learner.yb
        lam = self.distrib.sample().to(images.device)  # ALSO
        shuffle = torch.randperm(len(images)).to(images.device)
        size = images.shape[-1]
        (y1, x1), (y2, x2) = self.rand_bbox(size, lam)
        mixed = images.clone()
        mixed[..., y1:y2, x1:x2] = images[shuffle][..., y1:y2, x1:x2]
        self.lam = 1 - (y2 - y1) * (x2 - x1) / float(size * size)
        self.labels = labels[shuffle]
        learner.xb = mixed

    def after_loss(self):
        learner = self.learner
        other = learner.loss_func(learner.pred, self.labels)
        learner.loss = learner.loss * self.lam + other * (1 - self.lam)


class Recorder(Callback):
    def __init__(self):
        self.losses = []

    def after_loss(self):
        self.losses.append(self.learner.loss.item())


class Learner:
    def __init__(self, batches, model, loss_func, lr=0.05, cbs=(), device=None):
        self.device = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
        self.batches = batches
        self.model = model.to(self.device)
        self.loss_func = loss_func
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.cbs = list(cbs)
        for cb in self.cbs:
            cb.learner = self

    def __call__(self, event):
        for cb in self.cbs:
            getattr(cb, event)()

    def one_batch(self, batch):
        self.xb, self.yb = [t.to(self.device) for t in batch]
        self("before_batch")
        self.pred = self.model(self.xb)
        self.loss = self.loss_func(self.pred, self.yb)
        self("after_loss")
        self.optimizer.zero_grad()
        self.loss.backward()
        self.optimizer.step()

    def fit(self, epochs):
        for _ in range(epochs):
            for batch in self.batches:
                self.one_batch(batch)


def simple_cnn(classes):
    return nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, classes))


def main():
    torch.manual_seed(0)
    batches = [(torch.rand(4, 3, 16, 16), torch.randint(0, 5, (4,))) for _ in range(3)]
    recorder = Recorder()
    learner = Learner(batches, simple_cnn(5), nn.CrossEntropyLoss(), cbs=[CutMix(1.0), recorder])
    learner.fit(1)
    assert all(math.isfinite(value) for value in recorder.losses)
    print([round(value, 4) for value in recorder.losses])


if __name__ == "__main__":
    main()
