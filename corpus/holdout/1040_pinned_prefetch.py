# source: own program
# mechanism: batches are collated into pinned host buffers and copied with non_blocking transfers, and results return into a preallocated host buffer
# expect: clean
import warnings
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

warnings.filterwarnings("ignore", message="PyTorch was compiled without cuDNN")  # a build for CPUs says so


@dataclass
class Batch:
    values: torch.Tensor
    lengths: torch.Tensor
    rows: torch.Tensor

    def pin_memory(self):
        return Batch(self.values.pin_memory(), self.lengths, self.rows)

    def to(self, device):
        return Batch(self.values.to(device, non_blocking=True), self.lengths, self.rows)


class Sequences(Dataset):
    def __init__(self, count=10):
        gen = torch.Generator().manual_seed(4)
        self.items = [torch.randn(int(torch.randint(2, 7, (), generator=gen)), 3, generator=gen) for _ in range(count)]

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return i, self.items[i]


def collate(samples):
    rows, items = zip(*samples)
    lengths = torch.tensor([len(i) for i in items])
    return Batch(nn.utils.rnn.pad_sequence(items, batch_first=True), lengths, torch.tensor(rows)).pin_memory()


class Prefetcher:
    def __init__(self, loader, device):
        self.loader = loader
        self.device = device

    def __iter__(self):
        waiting = None
        for batch in self.loader:
            upcoming = batch.to(self.device)
            if waiting is not None:
                yield waiting
            waiting = upcoming
        if waiting is not None:
            yield waiting


class Summarizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 5, batch_first=True)

    def forward(self, batch):
        packed = nn.utils.rnn.pack_padded_sequence(batch.values, batch.lengths, batch_first=True, enforce_sorted=False)
        return self.rnn(packed)[1][0]


@torch.no_grad()
def main():
    torch.manual_seed(0)
    device, data = torch.device("cuda", 0), Sequences()
    model = Summarizer().to(device)
    results = torch.empty(len(data), 5)
    for batch in Prefetcher(DataLoader(data, batch_size=4, shuffle=True, collate_fn=collate), device):
        results[batch.rows] = model(batch).cpu()
    print(tuple(results.shape), results.device, round(results.abs().mean().item(), 4))


if __name__ == "__main__":
    main()
