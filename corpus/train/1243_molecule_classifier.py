# source: snap-stanford/ogb#68
# mechanism: a network's forward reads the edges of a module-level data object instead of its argument, and only a copy of that object was moved
# expect: raises
import copy
from typing import List

import torch
from torch import nn


class Data:
    def __init__(self, **tensors: torch.Tensor):
        self.__dict__.update(tensors)

    def to(self, device: torch.device) -> "Data":
        out = copy.copy(self)
        for key, value in self.__dict__.items():
            setattr(out, key, value.to(device))
        return out


def random_molecules(n_graphs: int, n_atoms: int) -> Data:
    gen = torch.Generator().manual_seed(3)
    xs, edges, batch = [], [], []
    for g in range(n_graphs):
        xs.append(torch.randint(0, 6, (n_atoms, 2), generator=gen))
        chain = torch.arange(n_atoms - 1) + g * n_atoms
        edges += [torch.stack([chain, chain + 1]), torch.stack([chain + 1, chain])]
        batch.append(torch.full((n_atoms,), g))
    y = torch.randint(0, 2, (n_graphs,), generator=gen)
    return Data(x=torch.cat(xs), edge_index=torch.cat(edges, dim=1), batch=torch.cat(batch), y=y)


data = random_molecules(n_graphs=12, n_atoms=5)


class AtomEncoder(nn.Module):
    def __init__(self, emb_dim: int, feature_dims: List[int]):
        super().__init__()
        self.embeddings = nn.ModuleList(nn.Embedding(n, emb_dim) for n in feature_dims)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return sum(emb(x[:, i]) for i, emb in enumerate(self.embeddings))


class GCNConv(nn.Module):
    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.lin = nn.Linear(in_dim, out_dim)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = self.lin(x)
        source, target = edge_index
        messages = x.index_select(0, source)  # RAISE
        return x + torch.zeros_like(x).index_add(0, target, messages)


def global_max_pool(x: torch.Tensor, batch: torch.Tensor, size: int) -> torch.Tensor:
    out = x.new_full((size, x.shape[1]), float("-inf"))
    return out.scatter_reduce(0, batch[:, None].expand_as(x), x, reduce="amax")


class Net(nn.Module):
    def __init__(self, hidden: int = 16, classes: int = 2, dropout: float = 0.1):
        super().__init__()
        self.emb = AtomEncoder(hidden, [6, 6])
        self.conv1, self.conv2 = GCNConv(hidden, hidden), GCNConv(hidden, hidden)
        self.head = nn.Linear(hidden, classes)
        self.dropout = dropout

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor, num_graphs: int) -> torch.Tensor:
        x, edge_index = self.emb(x), data.edge_index  # ROOT
        x = self.conv1(x, edge_index).relu()
        x = nn.functional.dropout(x, self.dropout, training=self.training)
        x = self.conv2(x, edge_index)
        return self.head(global_max_pool(x, batch, num_graphs))


def train(model: Net, graphs: Data, optimizer: torch.optim.Optimizer) -> float:
    model.train()
    optimizer.zero_grad()
    out = model(graphs.x, graphs.edge_index, graphs.batch, len(graphs.y))
    loss = nn.functional.cross_entropy(out, graphs.y)
    loss.backward()
    optimizer.step()
    return loss.item()


@torch.no_grad()
def test(model: Net, graphs: Data) -> float:
    model.eval()
    out = model(graphs.x, graphs.edge_index, graphs.batch, len(graphs.y))
    return (out.argmax(1) == graphs.y).float().mean().item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = Net().to(device)
    graphs = data.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        print(epoch, train(model, graphs, optimizer), test(model, graphs))


if __name__ == "__main__":
    main()
