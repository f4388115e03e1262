# source: Lightning-AI/pytorch-lightning#7959
# mechanism: the best score of an early stopping callback comes back from a checkpoint on the GPU of the first run, and is compared with a score on another GPU
# expect: raises
# needs: 2 GPUs
import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class EarlyStopping:
    mode_dict = {"min": torch.lt, "max": torch.gt}

    def __init__(self, monitor, min_delta=0.0, patience=3, mode="min"):
        self.monitor = monitor
        self.patience = patience
        self.mode = mode
        self.wait_count = 0
        self.min_delta = min_delta * (1 if mode == "max" else -1)
        self.best_score = torch.tensor(float("inf" if mode == "min" else "-inf"))

    @property
    def monitor_op(self):
        return self.mode_dict[self.mode]

    def on_save_checkpoint(self):
        return {"wait_count": self.wait_count, "best_score": self.best_score, "patience": self.patience}

    def on_load_checkpoint(self, state):
        self.wait_count = state["wait_count"]
        self.best_score = state["best_score"]  # ALSO
        self.patience = state["patience"]

    def on_validation_end(self, metrics):
        current = metrics[self.monitor]
        if self.monitor_op(current - self.min_delta, self.best_score):  # RAISE # ROOT
            self.best_score = current
            self.wait_count = 0
            return False
        self.wait_count += 1
        return self.wait_count >= self.patience


class Fitter:
    def __init__(self, model, root_device, callback):
        self.root_device = root_device
        self.model = model.to(root_device)
        self.callback = callback
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)

    def _move(self, batch):
        return [t.to(self.root_device) for t in batch]

    def fit(self, train_loader, val_loader, max_epochs):
        for _ in range(max_epochs):
            for batch in train_loader:
                x, y = self._move(batch)
                loss = nn.functional.mse_loss(self.model(x), y)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            if self.callback.on_validation_end(self.validate(val_loader)):
                break

    @torch.no_grad()
    def validate(self, loader):
        total = torch.zeros((), device=self.root_device)
        for batch in loader:
            x, y = self._move(batch)
            total += nn.functional.mse_loss(self.model(x), y)
        return {"val_loss": total / len(loader)}

    def dump_checkpoint(self):
        buffer = io.BytesIO()
        torch.save({"model": self.model.state_dict(), "callback": self.callback.on_save_checkpoint()}, buffer)
        buffer.seek(0)
        return buffer

    def restore(self, buffer):
        checkpoint = torch.load(buffer)  # ALSO
        self.model.load_state_dict(checkpoint["model"])
        self.callback.on_load_checkpoint(checkpoint["callback"])


def make_loader(n, seed):
    gen = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 5, generator=gen)
    return DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8)


def main():
    torch.manual_seed(0)
    train_loader, val_loader = make_loader(32, 1), make_loader(16, 2)
    first = Fitter(nn.Linear(5, 1), torch.device("cuda", 0), EarlyStopping("val_loss"))
    first.fit(train_loader, val_loader, max_epochs=2)
    second = Fitter(nn.Linear(5, 1), torch.device("cuda", 1), EarlyStopping("val_loss"))
    second.restore(first.dump_checkpoint())
    second.fit(train_loader, val_loader, max_epochs=2)
    print("best %.3f" % second.callback.best_score.item())


if __name__ == "__main__":
    main()
