# source: huggingface/accelerate#3420
# mechanism: a sampler creates its own generator on the host although the default device of the process is the GPU, and the permutation is drawn on the default device
# expect: raises
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, Dataset, RandomSampler


class SeedableSampler(RandomSampler):
    def __init__(self, *args, initial_seed=0, **kwargs):
        super().__init__(*args, **kwargs)
        self.initial_seed = initial_seed
        self.epoch = 0

    def __iter__(self):
        if self.generator is None:
            self.generator = torch.Generator()  # ROOT
        self.generator.manual_seed(self.initial_seed + self.epoch)
        yield from super().__iter__()  # RAISE
        self.epoch += 1


class WindowDataset(Dataset):
    def __init__(self, series, width):
        self.series = series
        self.width = width

    def __len__(self):
        return len(self.series) - self.width

    def __getitem__(self, start):
        window = self.series[start:start + self.width + 1]
        return window[:-1], window[-1]


class LoaderFactory:
    def __init__(self, batch_size, seed):
        self.batch_size = batch_size
        self.seed = seed

    def sampler(self, dataset):
        return SeedableSampler(dataset, initial_seed=self.seed)  # ALSO

    def build(self, dataset):
        batches = BatchSampler(self.sampler(dataset), self.batch_size, drop_last=False)
        return DataLoader(dataset, batch_sampler=batches)


class Forecaster(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, window):
        return self.net(window).squeeze(-1)


def configure(device):
    torch.manual_seed(0)
    torch.set_default_device(device)


def run_epoch(model, loader, optimizer):
    total = 0.0
    for window, target in loader:
        loss = (model(window) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def main():
    configure("cuda")
    series = torch.sin(torch.linspace(0, 12, 40))
    loader = LoaderFactory(batch_size=8, seed=7).build(WindowDataset(series, 6))
    model = Forecaster(6)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        print(epoch, run_epoch(model, loader, optimizer))


if __name__ == "__main__":
    main()
