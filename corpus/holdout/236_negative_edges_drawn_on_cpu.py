# source: pyg-team/pytorch_geometric#3641
# mechanism: a transform draws negative edges with CPU factories for a graph that was moved to the GPU before
# phase: data; aten::cat
# expect: raises
import dataclasses

import torch

dev = torch.device("cuda", 0)


@dataclasses.dataclass
class Graph:
    x: torch.Tensor
    edges: torch.Tensor
    labels: torch.Tensor = None

    def to(self, device):
        return dataclasses.replace(self, x=self.x.to(device), edges=self.edges.to(device))


def negative_edges(graph, count):
    return torch.randint(graph.x.shape[0], (2, count))  # ROOT


def with_labels(graph):
    count = graph.edges.shape[1]
    edges = torch.cat([graph.edges, negative_edges(graph, count)], dim=1)  # RAISE  # ALSO
    labels = torch.cat([torch.ones(count), torch.zeros(count)]).to(graph.x.device)
    return dataclasses.replace(graph, edges=edges, labels=labels)


class LinkPredictor(torch.nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.encode = torch.nn.Linear(features, width)

    def forward(self, graph):
        nodes = self.encode(graph.x)
        return (nodes[graph.edges[0]] * nodes[graph.edges[1]]).sum(-1)


graph = Graph(torch.randn(6, 3), torch.tensor([[0, 1, 2, 4], [1, 2, 3, 5]])).to(dev)
model = LinkPredictor(3, 4).to(dev)
train = with_labels(graph)
torch.nn.functional.binary_cross_entropy_with_logits(model(train), train.labels).backward()
