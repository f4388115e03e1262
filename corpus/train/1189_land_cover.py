# source: Lightning-AI/torchmetrics#275
# mechanism: a module keeps its metrics in a plain dictionary, so their states do not move with it to the GPU
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Metric(nn.Module):
    def __init__(self):
        super().__init__()
        self._defaults = {}

    def add_state(self, name, default):
        self._defaults[name] = default.clone()
        self.register_buffer(name, default, persistent=False)

    def reset(self):
        for name, default in self._defaults.items():
            setattr(self, name, default.clone().to(getattr(self, name).device))

    def forward(self, preds, target):
        self.update(preds, target)
        return self.compute()


class ConfusionMatrix(Metric):
    def __init__(self, num_classes):
        super().__init__()
        self.num_classes = num_classes
        self.add_state("confmat", torch.zeros(num_classes, num_classes, dtype=torch.long))

    def update(self, preds, target):
        joint = (target * self.num_classes + preds).flatten()
        bins = torch.bincount(joint, minlength=self.num_classes ** 2)
        self.confmat += bins.view(self.num_classes, self.num_classes)  # RAISE

    def compute(self):
        return self.confmat


class IoU(ConfusionMatrix):
    def compute(self):
        overlap = self.confmat.diagonal().float()
        union = self.confmat.sum(0) + self.confmat.sum(1) - self.confmat.diagonal()
        return (overlap / union.clamp(min=1)).mean()


class Accuracy(Metric):
    def __init__(self):
        super().__init__()
        self.add_state("correct", torch.zeros(1, dtype=torch.long))
        self.add_state("total", torch.zeros(1, dtype=torch.long))

    def update(self, preds, target):
        self.correct += (preds == target).sum()
        self.total += target.numel()

    def compute(self):
        return (self.correct.float() / self.total.clamp(min=1)).mean()


class LandCoverModule(nn.Module):
    def __init__(self, bands=4, num_classes=3, lr=1e-2):
        super().__init__()
        self.lr = lr
        self.network = nn.Sequential(
            nn.Conv2d(bands, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.Conv2d(8, num_classes, 1)
        )
        self.criterion = nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 2.0]))
        self.train_accuracy = Accuracy()
        self.val_metrics = {"iou": IoU(num_classes), "accuracy": Accuracy()}  # ROOT

    def configure_optimizers(self):
        return torch.optim.Adam(self.network.parameters(), lr=self.lr)

    def training_step(self, batch):
        images, masks = batch
        logits = self.network(images)
        self.train_accuracy.update(logits.argmax(1), masks)
        return self.criterion(logits, masks)

    def validation_step(self, batch):
        images, masks = batch
        preds = self.network(images).argmax(1)
        for metric in self.val_metrics.values():
            metric.update(preds, masks)

    def validation_epoch_end(self):
        values = {name: metric.compute().item() for name, metric in self.val_metrics.items()}
        for metric in self.val_metrics.values():
            metric.reset()
        return values


class Trainer:
    def __init__(self, max_epochs, accelerator="cuda"):
        self.max_epochs = max_epochs
        self.device = torch.device(accelerator)

    def transfer(self, batch):
        return [t.to(self.device) for t in batch]

    def fit(self, module, train_loader, val_loader):
        module.to(self.device)
        optimizer = module.configure_optimizers()
        for epoch in range(self.max_epochs):
            module.train()
            for batch in train_loader:
                optimizer.zero_grad()
                module.training_step(self.transfer(batch)).backward()
                optimizer.step()
            print("epoch", epoch, "train accuracy", round(module.train_accuracy.compute().item(), 4))
            module.train_accuracy.reset()
            module.eval()
            with torch.no_grad():
                for batch in val_loader:
                    module.validation_step(self.transfer(batch))
            print({name: round(value, 4) for name, value in module.validation_epoch_end().items()})


def tiles(count, seed):
    gen = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 4, 8, 8, generator=gen)
    return TensorDataset(images, (images.mean(1) * 3).long().clamp(max=2))


if __name__ == "__main__":
    torch.manual_seed(0)
    Trainer(2).fit(LandCoverModule(), DataLoader(tiles(8, 0), batch_size=4), DataLoader(tiles(4, 1), batch_size=2))
