# source: pyg-team/pytorch_geometric#3709
# mechanism: negative edges are sampled on the host and concatenated with positive edges of a graph that an earlier transform moved
# expect: raises
import copy
from typing import Callable, List, Tuple

import torch
from torch import nn


class GraphData:
    def __init__(self, x: torch.Tensor, edge_index: torch.Tensor):
        self.x, self.edge_index = x, edge_index
        self.edge_label = self.edge_label_index = None

    def clone(self) -> "GraphData":
        return copy.copy(self)


class ToDevice:
    def __init__(self, device: torch.device):
        self.device = device

    def __call__(self, data: GraphData) -> GraphData:
        out = data.clone()
        out.x, out.edge_index = data.x.to(self.device), data.edge_index.to(self.device)
        return out


class Compose:
    def __init__(self, transforms: List[Callable]):
        self.transforms = transforms

    def __call__(self, data):
        for transform in self.transforms:
            data = transform(data)
        return data


def negative_sampling(edge_index: torch.Tensor, num_nodes: int, num_neg: int) -> torch.Tensor:
    taken = set((edge_index[0] * num_nodes + edge_index[1]).tolist())
    flat = [i for i in torch.randperm(num_nodes * num_nodes).tolist() if i not in taken][:num_neg]
    neg = torch.tensor(flat, dtype=torch.long)  # ALSO
    row, col = torch.div(neg, num_nodes, rounding_mode="floor"), neg % num_nodes
    return torch.stack([row, col], dim=0)  # ROOT


class RandomLinkSplit:
    def __init__(self, num_test: float, neg_ratio: float = 1.0):
        self.num_test, self.neg_ratio = num_test, neg_ratio

    def _create_label(self, data: GraphData, pos: torch.Tensor, num_nodes: int) -> GraphData:
        neg = negative_sampling(data.edge_index, num_nodes, int(pos.shape[1] * self.neg_ratio))  # ALSO
        data.edge_label_index = torch.cat([pos, neg], dim=-1)  # RAISE
        data.edge_label = torch.cat([
            torch.ones(pos.shape[1], device=pos.device),
            torch.zeros(neg.shape[1], device=pos.device),
        ])
        return data

    def __call__(self, data: GraphData) -> Tuple[GraphData, GraphData]:
        n_edges, n_nodes = data.edge_index.shape[1], data.x.shape[0]
        perm = torch.randperm(n_edges, device=data.edge_index.device)
        n_test = int(self.num_test * n_edges)
        train, test = data.clone(), data.clone()
        pos_train = data.edge_index[:, perm[n_test:]]
        train.edge_index = test.edge_index = pos_train
        self._create_label(train, pos_train, n_nodes)
        self._create_label(test, data.edge_index[:, perm[:n_test]], n_nodes)
        return train, test


class Encoder(nn.Module):
    def __init__(self, in_dim: int, hidden: int):
        super().__init__()
        self.lin = nn.Linear(in_dim, hidden)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        h = self.lin(x)
        return h + torch.zeros_like(h).index_add(0, edge_index[1], h[edge_index[0]])

    def decode(self, z: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return (z[index[0]] * z[index[1]]).sum(-1)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(5)
    transform = Compose([ToDevice(device), RandomLinkSplit(num_test=0.2)])
    train, test = transform(GraphData(torch.randn(20, 6), torch.randint(0, 20, (2, 60))))
    model = Encoder(6, 8).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(3):
        z = model(train.x, train.edge_index)
        out = model.decode(z, train.edge_label_index)
        loss = nn.functional.binary_cross_entropy_with_logits(out, train.edge_label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    score = model.decode(model(test.x, test.edge_index), test.edge_label_index).sigmoid()
    print("loss", loss.item(), "mean score", score.mean().item())


if __name__ == "__main__":
    main()
