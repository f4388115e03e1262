# source: Hyfred/Pytorch_DeepFM#4
# mechanism: a bias is drawn anew in each forward with the size of the batch, on the CPU
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class FirstOrder(nn.Module):
    def __init__(self, field_sizes):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, 1) for n in field_sizes])

    def forward(self, index, value):
        parts = [t(index[:, i]).squeeze(1) * value[:, i] for i, t in enumerate(self.tables)]
        return torch.stack(parts, dim=1)


class SecondOrder(nn.Module):
    def __init__(self, field_sizes, dim):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(n, dim) for n in field_sizes])

    def forward(self, index, value):
        parts = [t(index[:, i]) * value[:, i : i + 1] for i, t in enumerate(self.tables)]
        emb = torch.stack(parts, dim=1)
        square = emb.sum(1) ** 2
        return 0.5 * (square - (emb**2).sum(1)), emb.flatten(1)


class ClickModel(nn.Module):
    def __init__(self, field_sizes, dim=4, hidden=(16, 8), use_cuda=True):
        super().__init__()
        if use_cuda and torch.cuda.is_available():
            self.device = torch.device("cuda")
        else:
            self.device = torch.device("cpu")
        self.first = FirstOrder(field_sizes)
        self.second = SecondOrder(field_sizes, dim)
        layers, width = [], dim * len(field_sizes)
        for h in hidden:
            layers += [nn.Linear(width, h), nn.BatchNorm1d(h), nn.ReLU()]
            width = h
        self.deep = nn.Sequential(*layers)

    def forward(self, index, value):
        first = self.first(index, value)
        second, flat = self.second(index, value)
        deep = self.deep(flat)
        bias = torch.randn(index.size(0))  # ROOT
        total = first.sum(1) + second.sum(1) + deep.sum(1)
        return total + bias  # RAISE # ALSO

    def fit(self, loader, epochs=1, lr=1e-3):
        self.to(self.device).train()
        optimizer = torch.optim.Adam(self.parameters(), lr=lr)
        for _ in range(epochs):
            for index, value, label in loader:
                index = index.to(self.device)
                value = value.to(self.device)
                label = label.to(self.device)
                loss = F.binary_cross_entropy_with_logits(self(index, value), label)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()


def make_loader(field_sizes, rows=24):
    index = torch.stack([torch.randint(0, n, (rows,)) for n in field_sizes], dim=1)
    value = torch.ones(rows, len(field_sizes))
    label = (torch.rand(rows) > 0.5).float()
    return DataLoader(TensorDataset(index, value, label), batch_size=8)


if __name__ == "__main__":
    sizes = [5, 7, 3]
    print("loss", ClickModel(sizes).fit(make_loader(sizes)))
