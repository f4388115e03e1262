# source: catalyst-team/catalyst#214
# mechanism: the helper that moves a batch handles tensors only at the top level, so tensors inside a nested tuple stay on the host
# expect: raises
from collections import OrderedDict

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class PairDataset(Dataset):
    def __init__(self, count=24):
        gen = torch.Generator().manual_seed(2)
        self.images = torch.randn(count, 1, 6, 6, generator=gen)
        self.meta = torch.randn(count, 4, generator=gen)
        self.targets = (self.meta.sum(1) > 0).long()

    def __len__(self):
        return len(self.targets)

    def __getitem__(self, i):
        return {"features": (self.images[i], self.meta[i]), "targets": self.targets[i], "name": f"sample_{i}"}


class TwoBranch(nn.Module):
    def __init__(self):
        super().__init__()
        self.image = nn.Sequential(nn.Flatten(), nn.Linear(36, 8), nn.ReLU())
        self.meta = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.head = nn.Linear(16, 2)

    def forward(self, features):
        image, meta = features
        return self.head(torch.cat([self.image(image), self.meta(meta)], dim=1))  # RAISE


class Runner:
    def __init__(self, model, device="cuda"):
        self.device = torch.device(device)
        self.model = model.to(self.device)
        self.state = OrderedDict()

    def _to_device(self, value):
        if torch.is_tensor(value):
            return value.to(self.device, non_blocking=True)
        return value  # ROOT

    def _batch2device(self, batch):
        return {key: self._to_device(value) for key, value in batch.items()}  # ALSO

    def predict_batch(self, batch):
        return {"logits": self.model(batch["features"])}  # ALSO

    def on_batch_start(self, batch):
        self.state["input"] = self._batch2device(batch)

    def run_loader(self, loader, criterion, optimizer=None):
        losses = []
        for batch in loader:
            self.on_batch_start(batch)
            self.state["output"] = self.predict_batch(self.state["input"])
            loss = criterion(self.state["output"]["logits"], self.state["input"]["targets"])
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            losses.append(loss.item())
        return sum(losses) / len(losses)


class Experiment:
    def __init__(self, epochs):
        self.epochs = epochs

    def get_loaders(self):
        return OrderedDict(train=DataLoader(PairDataset(), batch_size=8), valid=DataLoader(PairDataset(8), batch_size=8))

    def run(self):
        runner = Runner(TwoBranch())
        optimizer = torch.optim.Adam(runner.model.parameters(), lr=0.01)
        for epoch in range(self.epochs):
            for name, loader in self.get_loaders().items():
                value = runner.run_loader(loader, nn.CrossEntropyLoss(), optimizer if name == "train" else None)
                print(epoch, name, round(value, 4))


if __name__ == "__main__":
    torch.manual_seed(0)
    Experiment(epochs=2).run()
