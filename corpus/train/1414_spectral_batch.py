# source: shaham-lab/SpectralNet#4
# mechanism: neighbours that are found for a batch are collected in a list, become a tensor on the CPU, and are joined to the batch on the GPU
# expect: raises
import torch
from torch import nn


class NeighborIndex:
    """A small exact index over the training points, kept on the host."""

    def __init__(self, points):
        self.points = points.cpu()

    def get(self, query, count):
        dist = torch.cdist(query.cpu().unsqueeze(0), self.points)[0]
        return dist.topk(count, largest=False).indices.tolist()

    def vector(self, i):
        return self.points[i].tolist()


def make_sparse_batch(batch_x, index, n_neighbors=2):
    seen, rows = set(), []
    for x in batch_x:
        for i in index.get(x, n_neighbors + 1)[1:]:
            if i not in seen:
                seen.add(i)
                rows.append(index.vector(i))
    neighbors = torch.tensor(rows)  # ROOT
    return torch.cat([batch_x, neighbors])  # RAISE # ALSO


def affinity(x, scale=1.0):
    dist = torch.cdist(x, x)
    return torch.exp(-(dist**2) / (2 * scale**2))


class SpectralModel(nn.Module):
    def __init__(self, in_dim, hidden=16, out=2):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(in_dim, hidden), nn.Tanh(), nn.Linear(hidden, out))
        self.register_buffer("ortho", torch.eye(out))

    def update_orthonormalization(self, x):
        y = self.net(x)
        _, r = torch.linalg.qr(y.cpu())
        self.ortho = (torch.linalg.inv(r) * x.shape[0] ** 0.5).to(y.device)

    def forward(self, x, update=False):
        if update:
            with torch.no_grad():
                self.update_orthonormalization(x)
        return self.net(x) @ self.ortho


class SpectralTrainer:
    def __init__(self, device, is_sparse_graph=True, lr=1e-3):
        self.device = device
        self.is_sparse_graph = is_sparse_graph
        self.lr = lr

    def train(self, points, epochs=1, batch_size=8):
        index = NeighborIndex(points)
        model = SpectralModel(points.shape[1]).to(self.device)
        optimizer = torch.optim.Adam(model.parameters(), lr=self.lr)
        for _ in range(epochs):
            for x in points.split(batch_size):
                x = x.to(self.device)
                if self.is_sparse_graph:
                    x = make_sparse_batch(x, index)
                model(x, update=True)
                y = model(x)
                loss = (affinity(x) * torch.cdist(y, y) ** 2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    print(SpectralTrainer(device).train(torch.randn(24, 4)))
