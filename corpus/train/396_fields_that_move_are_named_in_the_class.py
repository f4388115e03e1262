# source: pyg-team/pytorch_geometric#3512
# mechanism: a graph moves the fields that a constant of its class names; one that came later is not among them
# phase: forward; aten::mul.Tensor
# expect: raises
import dataclasses

import torch


@dataclasses.dataclass
class Graph:
    FIELDS = ("x", "edges")  # ROOT
    x: torch.Tensor
    edges: torch.Tensor
    weight: torch.Tensor

    def to(self, device):
        return dataclasses.replace(self, **{name: getattr(self, name).to(device) for name in self.FIELDS})  # ALSO


def propagate(graph):
    source, target = graph.edges
    message = graph.x[source] * graph.weight[:, None]  # RAISE
    return torch.zeros_like(graph.x).index_add_(0, target, message)


graph = Graph(torch.rand(5, 3), torch.randint(5, (2, 9)), torch.rand(9)).to("cuda")
propagate(graph)
