# source: pyg-team/pytorch_geometric#3329
# mechanism: a sampler walks a host copy of the graph and hands back host edges beside features sliced from the device
# expect: raises
import copy
from typing import Iterator, List, Tuple

import torch
from torch import nn


class Data:
    def __init__(self, x: torch.Tensor, edge_index: torch.Tensor, y: torch.Tensor):
        self.x, self.edge_index, self.y = x, edge_index, y

    @property
    def num_nodes(self) -> int:
        return self.x.shape[0]

    def to(self, device: torch.device) -> "Data":
        out = copy.copy(self)
        for key, value in self.__dict__.items():
            if isinstance(value, torch.Tensor):
                setattr(out, key, value.to(device))
        return out


def to_csc(data: Data) -> Tuple[List[int], List[int]]:
    row, col = data.edge_index.cpu()
    perm = torch.argsort(col)
    counts = torch.bincount(col, minlength=data.num_nodes)
    colptr = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
    return colptr.tolist(), row[perm].tolist()


def filter_data(data: Data, node: torch.Tensor, row: torch.Tensor, col: torch.Tensor) -> Data:
    out = copy.copy(data)
    index = node.to(data.x.device)
    out.x = data.x.index_select(0, index)
    out.y = data.y.index_select(0, index)
    out.edge_index = torch.stack([row, col], dim=0)  # ROOT
    return out


class NeighborLoader:
    def __init__(self, data: Data, num_neighbors: List[int], batch_size: int):
        self.data, self.num_neighbors, self.batch_size = data, num_neighbors, batch_size
        self.colptr, self.row = to_csc(data)

    def sample(self, seeds: List[int]):
        nodes, local = list(seeds), {n: i for i, n in enumerate(seeds)}
        rows, cols, frontier = [], [], list(seeds)
        for fanout in self.num_neighbors:
            nxt = []
            for dst in frontier:
                for src in self.row[self.colptr[dst]: self.colptr[dst + 1]][:fanout]:
                    if src not in local:
                        local[src] = len(nodes)
                        nodes.append(src)
                        nxt.append(src)
                    rows.append(local[src])
                    cols.append(local[dst])
            frontier = nxt
        return torch.tensor(nodes), torch.tensor(rows, dtype=torch.long), torch.tensor(cols, dtype=torch.long)  # ALSO

    def __iter__(self) -> Iterator[Tuple[Data, int]]:
        for start in range(0, self.data.num_nodes, self.batch_size):
            seeds = list(range(start, min(start + self.batch_size, self.data.num_nodes)))
            node, row, col = self.sample(seeds)
            yield filter_data(self.data, node, row, col), len(seeds)  # ALSO


class SAGEConv(nn.Module):
    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.lin_l, self.lin_r = nn.Linear(in_dim, out_dim), nn.Linear(in_dim, out_dim)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        src, dst = edge_index
        out = torch.zeros_like(x)
        out.index_add_(0, dst, x.index_select(0, src))  # RAISE
        return self.lin_l(out) + self.lin_r(x)


class GraphSAGE(nn.Module):
    def __init__(self, in_dim: int, hidden: int, classes: int):
        super().__init__()
        self.convs = nn.ModuleList([SAGEConv(in_dim, hidden), SAGEConv(hidden, classes)])

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        x = self.convs[0](x, edge_index).relu()
        return self.convs[1](x, edge_index)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    data = Data(torch.randn(30, 8), torch.randint(0, 30, (2, 120)), torch.randint(0, 3, (30,))).to(device)
    model = GraphSAGE(8, 16, 3).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch, n_seed in NeighborLoader(data, [4, 4], batch_size=10):
        logits = model(batch.x, batch.edge_index)[:n_seed]
        loss = nn.functional.cross_entropy(logits, batch.y[:n_seed])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("ok", loss.item())


if __name__ == "__main__":
    main()
