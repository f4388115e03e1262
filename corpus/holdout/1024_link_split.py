# source: pyg-team/pytorch_geometric#3641
# mechanism: negative edges are sampled on the host and joined to positive edges of a graph that was already moved to the GPU by an earlier transform
# expect: raises
from dataclasses import dataclass, replace

import torch
from torch import nn


@dataclass
class Graph:
    x: torch.Tensor
    edge_index: torch.Tensor
    edge_label_index: torch.Tensor = None
    edge_label: torch.Tensor = None

    def to(self, device):
        moved = {k: v.to(device) for k, v in vars(self).items() if v is not None}
        return replace(self, **moved)


class ToDevice:
    def __init__(self, device):
        self.device = device

    def __call__(self, graph):
        return graph.to(self.device)


class NormalizeFeatures:
    def __call__(self, graph):
        return replace(graph, x=graph.x / graph.x.abs().sum(-1, keepdim=True).clamp(min=1e-6))


class Compose:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, graph):
        for step in self.steps:
            graph = step(graph)
        return graph


def negative_sampling(edge_index, num_nodes, count):
    taken = set((edge_index[0] * num_nodes + edge_index[1]).tolist())
    chosen = []
    for code in torch.randperm(num_nodes * num_nodes).tolist():
        if len(chosen) == count:
            break
        if code not in taken and code // num_nodes != code % num_nodes:
            chosen.append(code)
    codes = torch.tensor(chosen)  # ALSO
    return torch.stack([codes // num_nodes, codes % num_nodes])  # ROOT


class RandomLinkSplit:
    def __init__(self, num_val=0.2, neg_ratio=1.0):
        self.num_val = num_val
        self.neg_ratio = neg_ratio

    def label(self, graph, positive, negative):
        index = torch.cat([positive, negative], dim=1)  # RAISE # ALSO
        label = torch.zeros(index.shape[1], device=index.device)
        label[: positive.shape[1]] = 1.0
        return replace(graph, edge_label_index=index, edge_label=label)

    def __call__(self, graph):
        edges = graph.edge_index
        perm = torch.randperm(edges.shape[1], device=edges.device)
        held = int(self.num_val * edges.shape[1])
        val, train = edges[:, perm[:held]], edges[:, perm[held:]]
        negative = negative_sampling(edges, len(graph.x), int(self.neg_ratio * edges.shape[1]))  # ALSO
        visible = replace(graph, edge_index=train)
        return self.label(visible, train, negative[:, held:]), self.label(visible, val, negative[:, :held])  # ALSO


class LinkPredictor(nn.Module):
    def __init__(self, features, hidden=8):
        super().__init__()
        self.own, self.near = nn.Linear(features, hidden), nn.Linear(features, hidden)

    def forward(self, graph):
        source, target = graph.edge_index
        gathered = torch.zeros_like(graph.x).index_add(0, target, graph.x[source])
        z = torch.relu(self.own(graph.x) + self.near(gathered))
        return (z[graph.edge_label_index[0]] * z[graph.edge_label_index[1]]).sum(-1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    ring = torch.arange(12)
    graph = Graph(torch.randn(12, 5), torch.stack([ring, (ring + 1) % 12]))
    transform = Compose(NormalizeFeatures(), ToDevice(device), RandomLinkSplit())
    train, val = transform(graph)
    model = LinkPredictor(5).to(device)
    loss = nn.functional.binary_cross_entropy_with_logits(model(train), train.edge_label)
    loss.backward()
    print("loss", loss.item(), "val", model(val).mean().item())


if __name__ == "__main__":
    main()
