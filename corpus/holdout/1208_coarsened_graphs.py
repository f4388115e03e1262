# source: dmlc/dgl#3527
# mechanism: a list of coarsened graphs that serves every batch is built on the host and only the images and the model are moved
# expect: raises
from dataclasses import dataclass, field
from typing import Dict, List

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Graph:
    src: torch.Tensor
    dst: torch.Tensor
    num_nodes: int
    edata: Dict[str, torch.Tensor] = field(default_factory=dict)

    def to(self, device: torch.device) -> "Graph":
        edata = {k: v.to(device) for k, v in self.edata.items()}
        return Graph(self.src.to(device), self.dst.to(device), self.num_nodes, edata)


def grid_graph(side: int) -> Graph:
    index = torch.arange(side * side).view(side, side)
    src = torch.cat([index[:, :-1].flatten(), index[:-1].flatten()])
    dst = torch.cat([index[:, 1:].flatten(), index[1:].flatten()])
    return Graph(torch.cat([src, dst]), torch.cat([dst, src]), side * side)


def coarsening(side: int, levels: int) -> List[Graph]:
    graphs = []
    for level in range(levels):
        graph = grid_graph(side // (2 ** level))
        degree = torch.bincount(graph.dst, minlength=graph.num_nodes).float()
        graph.edata["norm"] = degree[graph.dst].rsqrt() * degree[graph.src].rsqrt()
        graphs.append(graph)
    return graphs


class ChebConv(nn.Module):
    def __init__(self, in_dim: int, out_dim: int):
        super().__init__()
        self.fc = nn.Linear(2 * in_dim, out_dim)

    def forward(self, g: Graph, feat: torch.Tensor) -> torch.Tensor:
        messages = feat[:, g.src] * g.edata["norm"].view(1, -1, 1)  # RAISE
        lap = torch.zeros_like(feat).index_add(1, g.dst, messages)
        return self.fc(torch.cat([feat, feat - lap], dim=-1)).relu()


class MoNet(nn.Module):
    def __init__(self, hidden: List[int], classes: int, side: int):
        super().__init__()
        dims = [1] + hidden
        self.side = side
        self.layers = nn.ModuleList(ChebConv(i, o) for i, o in zip(dims[:-1], dims[1:]))
        self.cls = nn.Linear(hidden[-1], classes)

    def forward(self, graphs: List[Graph], feat: torch.Tensor) -> torch.Tensor:
        side = self.side
        for g, layer in zip(graphs, self.layers):
            feat = layer(g, feat)
            maps = feat.transpose(1, 2).reshape(feat.shape[0], -1, side, side)
            feat = nn.functional.max_pool2d(maps, 2).flatten(2).transpose(1, 2)
            side //= 2
        return self.cls(feat.mean(1))


def evaluate(model: MoNet, graphs: List[Graph], loader: DataLoader, device: torch.device) -> float:
    hits = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (model(graphs, x.to(device)).argmax(1) == y.to(device)).sum().item()
    return hits / len(loader.dataset)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    side = 8
    g_list = coarsening(side, levels=2)  # ROOT
    data = TensorDataset(torch.rand(24, side * side, 1), torch.randint(0, 4, (24,)))
    loader = DataLoader(data, batch_size=8)
    model = MoNet([8, 16], 4, side).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for x, y in loader:
        x, y = x.to(device), y.to(device)
        loss = nn.functional.cross_entropy(model(g_list, x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("acc", evaluate(model, g_list, loader, device))


if __name__ == "__main__":
    main()
