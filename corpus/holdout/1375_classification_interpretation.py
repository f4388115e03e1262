# source: fastai/fastai#1715
# mechanism: predictions are collected on the CPU, and the loss per item is computed with a loss function whose class weights are on the GPU
# expect: raises
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class NoReduce:
    def __init__(self, loss_func):
        self.loss_func = loss_func
        self.old = None

    def __enter__(self):
        if hasattr(self.loss_func, "reduction"):
            self.old = self.loss_func.reduction
            self.loss_func.reduction = "none"
            return self.loss_func  # ROOT
        return partial(self.loss_func, reduction="none")

    def __exit__(self, *exc):
        if self.old is not None:
            self.loss_func.reduction = self.old
            self.loss_func.weight = getattr(self, "weight", self.loss_func.weight)


def to_device(batch, device):
    return [t.to(device) for t in batch]


def to_cpu(batch):
    return [t.detach().cpu() for t in batch]


class Learner:
    def __init__(self, model, loss_func, device, lr=0.05):
        self.device = device
        self.model = model.to(device)
        self.loss_func = loss_func
        self.opt = torch.optim.Adam(self.model.parameters(), lr=lr)

    def fit(self, loader, epochs):
        self.model.train()
        for _ in range(epochs):
            for batch in loader:
                xb, yb = to_device(batch, self.device)
                loss = self.loss_func(self.model(xb), yb)
                loss.backward()
                self.opt.step()
                self.opt.zero_grad()

    @torch.no_grad()
    def get_preds(self, loader, with_loss=False):
        self.model.eval()
        outputs = []
        for batch in loader:
            xb, yb = to_device(batch, self.device)
            outputs.append(to_cpu([self.model(xb), yb]))
        preds, targets = [torch.cat(column) for column in zip(*outputs)]
        result = [preds, targets]
        if with_loss:
            with NoReduce(self.loss_func) as loss_func:
                result.append(loss_func(preds, targets))  # RAISE # ALSO
        return result


class ClassificationInterpretation:
    def __init__(self, preds, targets, losses):
        self.preds, self.targets, self.losses = preds, targets, losses

    @classmethod
    def from_learner(cls, learn, loader):
        return cls(*learn.get_preds(loader, with_loss=True))

    def confusion_matrix(self):
        n = self.preds.shape[1]
        pairs = self.targets * n + self.preds.argmax(1)
        return torch.bincount(pairs, minlength=n * n).view(n, n)

    def top_losses(self, k):
        return self.losses.topk(k)


def class_weights(labels, classes):
    counts = torch.bincount(labels, minlength=classes).float()
    return counts.sum() / (classes * counts.clamp(min=1))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    x = torch.randn(30, 5)
    y = (x[:, 0] > 0.8).long() + (x[:, 1] > 0).long()
    loader = DataLoader(TensorDataset(x, y), batch_size=10)
    loss_func = nn.CrossEntropyLoss(weight=class_weights(y, 3).to(device))
    learn = Learner(nn.Linear(5, 3), loss_func, device)
    learn.fit(loader, 2)
    interp = ClassificationInterpretation.from_learner(learn, loader)
    print(interp.confusion_matrix().tolist(), interp.top_losses(3)[1].tolist())


if __name__ == "__main__":
    main()
