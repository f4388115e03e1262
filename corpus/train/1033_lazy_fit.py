# source: Lightning-AI/pytorch-lightning#554
# mechanism: the optimizer, whose accumulators are allocated when it is constructed, is configured before the fit loop sends the model to the GPU
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TaskModule(nn.Module):
    def training_step(self, batch, index):
        raise NotImplementedError

    def configure_optimizers(self):
        raise NotImplementedError


class RatingModel(TaskModule):
    def __init__(self, users=10, items=15, dim=6):
        super().__init__()
        self.users = nn.Embedding(users, dim)
        self.items = nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(-1) + self.bias

    def training_step(self, batch, index):
        user, item, rating = batch
        return (self(user, item) - rating).pow(2).mean()

    def configure_optimizers(self):
        return [torch.optim.Adagrad(self.parameters(), lr=0.1)]

    def train_dataloader(self):
        gen = torch.Generator().manual_seed(1)
        user = torch.randint(0, 10, (40,), generator=gen)
        item = torch.randint(0, 15, (40,), generator=gen)
        return DataLoader(TensorDataset(user, item, torch.rand(40, generator=gen) * 5), batch_size=10)


class ProgressCallback:
    def __init__(self):
        self.lines = []

    def on_epoch_end(self, epoch, value):
        self.lines.append(f"epoch {epoch}: {value:.4f}")


class Trainer:
    def __init__(self, gpus=0, max_epochs=2, callbacks=()):
        self.root = torch.device("cuda", 0) if gpus else torch.device("cpu")
        self.max_epochs = max_epochs
        self.callbacks = list(callbacks)

    def transfer(self, batch):
        return tuple(t.to(self.root) for t in batch)

    def single_device_train(self, model):
        optimizers = self.init_optimizers(model)  # ROOT
        model = model.to(self.root)
        self.run_training(model, optimizers)

    def init_optimizers(self, model):
        return model.configure_optimizers()  # ALSO

    def run_training(self, model, optimizers):
        model.train()
        for epoch in range(self.max_epochs):
            losses = [self.run_batch(model, b, i, optimizers) for i, b in enumerate(model.train_dataloader())]
            for callback in self.callbacks:
                callback.on_epoch_end(epoch, sum(losses) / len(losses))

    def run_batch(self, model, batch, index, optimizers):
        loss = model.training_step(self.transfer(batch), index)
        model.zero_grad()
        loss.backward()
        for optimizer in optimizers:
            optimizer.step()  # RAISE
        return loss.item()

    def fit(self, model):
        self.single_device_train(model)  # ALSO


def main():
    torch.manual_seed(0)
    progress = ProgressCallback()
    trainer = Trainer(gpus=1, callbacks=[progress])
    trainer.fit(RatingModel())  # ALSO
    print("\n".join(progress.lines))


if __name__ == "__main__":
    main()
