# source: https://github.com/dmlc/dgl/issues/1594
# mechanism: a graph's own to() moves its features; the edges stay, and so do the degrees counted from them
# phase: forward; aten::mul
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Graph:
    def __init__(self, edges, nodes):
        self.edges, self.nodes = edges, nodes
        self.features = {}

    def to(self, device):
        moved = Graph(self.edges, self.nodes)  # ROOT
        moved.features = {name: value.to(device) for name, value in self.features.items()}  # ALSO
        return moved

    def degrees(self):
        return torch.bincount(self.edges[1], minlength=self.nodes)


class Convolution(torch.nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.linear = torch.nn.Linear(inputs, outputs)

    def forward(self, graph, x):
        norm = graph.degrees().clamp(min=1).float().rsqrt().unsqueeze(1)
        return self.linear(x * norm).relu()  # RAISE


graph = Graph(torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]), nodes=4)
graph.features["x"] = torch.randn(4, 3)
graph = graph.to(dev)
model = Convolution(3, 2).to(dev)
model(graph, graph.features["x"]).sum().backward()
