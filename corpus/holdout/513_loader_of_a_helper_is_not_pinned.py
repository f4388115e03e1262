# source: https://github.com/constantinpape/torch-em/pull/357
# mechanism: the trainer copies its batches with non_blocking, and the helper that makes the loader does not pin them
# phase: training; aten::_to_copy
# expect: silent
# kinds: unpinned-async-copy
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make_loader(images, masks, size, **options):
    data = TensorDataset(images, masks)
    options.setdefault("drop_last", True)
    return DataLoader(data, batch_size=size, shuffle=True, **options)  # ROOT


class Trainer:
    def __init__(self, model, loader, device):
        self.model = model.to(device)
        self.loader = loader
        self.device = device
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)
        self.loss = nn.BCEWithLogitsLoss()

    def step(self, image, mask):
        pair = torch.cat([image, mask], 1).to(self.device, non_blocking=True)  # RAISE
        loss = self.loss(self.model(pair[:, :1]), pair[:, 1:])
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self.optimizer.step()

    def fit(self, epochs):
        for _ in range(epochs):
            for image, mask in self.loader:
                self.step(image, mask)


loader = make_loader(torch.rand(32, 1, 64, 64), torch.rand(32, 1, 64, 64).round(), 4)
Trainer(nn.Conv2d(1, 1, 3, padding=1), loader, torch.device("cuda")).fit(2)
