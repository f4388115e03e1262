# source: constantinpape/torch-em PR#357, #356
# mechanism: [async copy race] trainer copies with non_blocking=True, the loader gives pageable batches, so the copies stay blocking; the reviewer asked for pin_memory=True as the loader's default
# phase: data loading; failing op: Tensor.to(non_blocking=True) from pageable memory
# expect: silent
# kinds: unpinned-async-copy
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

dev = torch.device("cuda", 0)


class SegmentationDataset(Dataset):
    def __init__(self, raw, labels, patch):
        self.raw, self.labels, self.patch = raw, labels, patch

    def __len__(self):
        return 6

    def __getitem__(self, index):
        bb = slice(index * 2, index * 2 + self.patch)
        return self.raw[None, bb, bb], self.labels[None, bb, bb]


def get_data_loader(dataset, batch_size, **loader_kwargs):
    return DataLoader(dataset, batch_size=batch_size, **loader_kwargs)  # ROOT


class DefaultTrainer:
    def __init__(self, model, train_loader, device):
        self.model, self.train_loader, self.device = model.to(device), train_loader, device
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.train_loader:
                x, y = x.to(self.device, non_blocking=True), y.to(self.device, non_blocking=True)  # RAISE
                self.optimizer.zero_grad()
                nn.functional.binary_cross_entropy_with_logits(self.model(x), y).backward()
                self.optimizer.step()


dataset = SegmentationDataset(torch.rand(24, 24), torch.rand(24, 24).round(), patch=8)
DefaultTrainer(nn.Conv2d(1, 1, 3, padding=1), get_data_loader(dataset, 2, shuffle=True), dev).fit(1)
