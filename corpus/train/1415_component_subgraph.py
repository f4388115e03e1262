# source: pyg-team/pytorch_geometric#8817
# mechanism: the node mask of a largest component is computed on the host and is indexed with edges that stayed on the GPU
# expect: raises
from dataclasses import dataclass, replace

import torch
from torch import nn


@dataclass
class Graph:
    x: torch.Tensor
    pos: torch.Tensor
    edge_index: torch.Tensor

    def to(self, device):
        return Graph(self.x.to(device), self.pos.to(device), self.edge_index.to(device))

    @property
    def num_nodes(self):
        return self.x.shape[0]


def radius_graph(graph, r):
    dist = torch.cdist(graph.pos, graph.pos)
    near = (dist < r) & ~torch.eye(graph.num_nodes, dtype=torch.bool, device=dist.device)
    return replace(graph, edge_index=near.nonzero().t())


def connected_labels(edge_index, num_nodes):
    labels = list(range(num_nodes))
    edges = edge_index.t().tolist()
    changed = True
    while changed:
        changed = False
        for a, b in edges:
            low = min(labels[a], labels[b])
            if labels[a] != low or labels[b] != low:
                labels[a] = labels[b] = low
                changed = True
    return torch.tensor(labels)  # ALSO


def largest_component(graph):
    labels = connected_labels(graph.edge_index, graph.num_nodes)  # ALSO
    biggest = torch.bincount(labels).argmax()
    subset = labels == biggest  # ALSO
    return subgraph(subset, graph)  # ROOT


def subgraph(subset, graph):
    row, col = graph.edge_index
    edge_mask = subset[row] & subset[col]  # RAISE
    relabel = torch.cumsum(subset, dim=0) - 1
    edge_index = relabel[graph.edge_index[:, edge_mask]]
    return Graph(graph.x[subset], graph.pos[subset], edge_index)


class MeanConv(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.own = nn.Linear(inp, out)
        self.nbr = nn.Linear(inp, out)

    def forward(self, x, edge_index):
        src, dst = edge_index
        total = torch.zeros_like(x).index_add(0, dst, x[src])
        degree = torch.zeros(x.shape[0], 1, device=x.device)
        degree = degree.index_add(0, dst, torch.ones(dst.shape[0], 1, device=x.device))
        return self.own(x) + self.nbr(total / degree.clamp(min=1))


class PointNet(nn.Module):
    def __init__(self, inp=3, hidden=8, out=2):
        super().__init__()
        self.conv1, self.conv2 = MeanConv(inp, hidden), MeanConv(hidden, out)

    def forward(self, graph):
        h = torch.relu(self.conv1(graph.x, graph.edge_index))
        return self.conv2(h, graph.edge_index)


if __name__ == "__main__":
    torch.manual_seed(1)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    empty = torch.empty(2, 0, dtype=torch.long)
    graph = Graph(torch.randn(12, 3), torch.rand(12, 2), empty).to(device)
    graph = largest_component(radius_graph(graph, 0.3))
    print(graph.num_nodes, PointNet().to(device)(graph).sum().item())
