# source: GXYM/TextBPN-Plus-Plus#24
# mechanism: the default device is set to the GPU for the whole program, and a shuffling loader then draws its permutation there with the CPU generator it was given
# expect: raises
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Options:
    batch_size = 4
    max_epoch = 2
    lr = 1e-2
    seed = 11
    num_points = 5
    device = "cuda" if torch.cuda.is_available() else "cpu"


class ContourData(Dataset):
    def __init__(self, n, num_points, seed):
        rng = random.Random(seed)
        self.rows = [[(rng.random(), rng.random()) for _ in range(num_points)] for _ in range(n)]

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        points = torch.tensor(self.rows[i])
        return points, points.mean(0)


class Refiner(nn.Module):
    def __init__(self, num_points, hidden=12):
        super().__init__()
        self.inp = nn.Linear(2, hidden)
        self.rnn = nn.GRU(hidden, hidden, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * hidden, 2)
        self.anchor = nn.Parameter(torch.zeros(num_points, 2))

    def forward(self, points):
        x, _ = self.rnn(torch.relu(self.inp(points + self.anchor)))
        return points + self.out(x)


class CenterLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.huber = nn.SmoothL1Loss()
        self.axis = torch.tensor([1.0, 0.5])

    def forward(self, pred, center):
        diff = (pred.mean(1) - center) * self.axis
        return self.huber(diff, torch.zeros_like(diff))


def seed_everything(seed):
    random.seed(seed)
    torch.manual_seed(seed)
    g = torch.Generator()  # ALSO
    g.manual_seed(seed)
    return g


def make_loader(data, opt, generator):
    return DataLoader(
        data,
        batch_size=opt.batch_size,
        shuffle=True,
        drop_last=True,
        generator=generator,  # ROOT
    )


def train_epoch(model, loader, criterion, optimizer):
    losses = []
    for points, center in loader:  # RAISE
        loss = criterion(model(points), center)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    opt = Options()
    generator = seed_everything(opt.seed)
    torch.set_default_device(opt.device)
    data = ContourData(10, opt.num_points, opt.seed)
    loader = make_loader(data, opt, generator)  # ALSO
    model, criterion = Refiner(opt.num_points), CenterLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    for epoch in range(opt.max_epoch):
        print(epoch, train_epoch(model, loader, criterion, optimizer))


if __name__ == "__main__":
    main()
