# source: xiaxin1998/COTREC#4
# mechanism: a forward collects the result of each layer in a list and sums them with NumPy
# phase: forward; Tensor.__array__
# expect: raises
import numpy as np
import torch
from torch import nn


class TrailConv(nn.Module):
    def __init__(self, layers, width):
        super().__init__()
        self.layers = layers
        self.weights = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(layers))

    def forward(self, links, huts):
        final = [huts]
        for weight in self.weights:
            huts = torch.sparse.mm(links, weight(huts))
            final.append(nn.functional.normalize(huts, dim=-1))
        return np.sum(final, 0) / (self.layers + 1)  # ROOT  # RAISE


class WalkModel(nn.Module):
    def __init__(self, links, huts, width=8, layers=2):
        super().__init__()
        self.register_buffer("links", links)
        self.huts = nn.Embedding(huts, width)
        self.conv = TrailConv(layers, width)

    def forward(self, walks):
        huts = self.conv(self.links, self.huts.weight)
        return huts[walks].mean(1) @ huts.T


paths = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
links = torch.sparse_coo_tensor(paths, torch.full((6,), 0.5), (5, 5))
model = WalkModel(links, 5).to("cuda")
optimizer = torch.optim.Adam(model.parameters())

for walks, ends in [(torch.tensor([[0, 1], [4, 3]]), torch.tensor([2, 4]))]:
    loss = nn.functional.cross_entropy(model(walks.to("cuda")), ends.to("cuda"))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
