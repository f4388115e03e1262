# source: alibaba/graphlearn-for-pytorch#10
# mechanism: a feature store maps node numbers to rows with a table on the CPU, and a sampler asks with node numbers on the GPU
# expect: raises
import torch
from torch import nn


class Topology:
    def __init__(self, edge_index, num_nodes):
        order = edge_index[1].argsort()
        self.src = edge_index[0][order]
        counts = torch.bincount(edge_index[1], minlength=num_nodes)
        self.ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])

    def to(self, device):
        self.src, self.ptr = self.src.to(device), self.ptr.to(device)
        return self


class Feature:
    """Rows sorted by how often they are wanted: hot ones on the GPU, others on the host."""

    def __init__(self, rows, split_ratio, id2index, device):
        self.device = torch.device(device)
        hot = int(len(rows) * split_ratio)
        self.hot_count = hot
        self.hot = rows[:hot].to(self.device)
        self.cold = rows[hot:].cpu()
        self.id2index = id2index  # ALSO

    @property
    def dim(self):
        return self.hot.shape[1]

    def __getitem__(self, ids):
        if self.id2index is not None:
            ids = self.id2index[ids]  # RAISE # ROOT
        ids = ids.to(self.device)
        out = torch.empty(len(ids), self.dim, device=self.device)
        is_hot = ids < self.hot_count
        out[is_hot] = self.hot[ids[is_hot]]
        rest = ids[~is_hot].cpu() - self.hot_count
        out[~is_hot] = self.cold[rest].to(self.device)
        return out


def sort_by_in_degree(rows, topology, split_ratio, device):
    degree = topology.ptr.diff().cpu()
    order = degree.argsort(descending=True)
    id2index = torch.empty_like(order)
    id2index[order] = torch.arange(len(order))
    return Feature(rows[order], split_ratio, id2index, device)  # ALSO


class NeighborSampler:
    def __init__(self, topology, fanout, device):
        self.topology, self.fanout = topology.to(device), fanout
        self.device = torch.device(device)

    def sample(self, seeds):
        seeds = seeds.to(self.device)
        start, stop = self.topology.ptr[seeds], self.topology.ptr[seeds + 1]
        draw = torch.rand(len(seeds), self.fanout, device=self.device)
        pick = start[:, None] + (draw * (stop - start)[:, None]).long()
        pick = pick.clamp(max=len(self.topology.src) - 1)
        neighbors = self.topology.src[pick]
        neighbors = torch.where((stop > start)[:, None], neighbors, seeds[:, None])
        nodes, inverse = torch.cat([seeds, neighbors.flatten()]).unique(return_inverse=True)
        return nodes, inverse[: len(seeds)], inverse[len(seeds) :].view(len(seeds), -1)


class SAGE(nn.Module):
    def __init__(self, inp, classes):
        super().__init__()
        self.own, self.nbr = nn.Linear(inp, classes), nn.Linear(inp, classes)

    def forward(self, x, center, neighbors):
        return self.own(x[center]) + self.nbr(x[neighbors].mean(1))


def train(num_nodes=20, dim=6, classes=3):
    device = torch.device("cuda", 0) if torch.cuda.is_available() else torch.device("cpu")
    edges = torch.randint(0, num_nodes, (2, 60))
    topology = Topology(edges, num_nodes)
    feature = sort_by_in_degree(torch.randn(num_nodes, dim), topology, 0.4, device)
    labels = torch.randint(0, classes, (num_nodes,)).to(device)
    sampler = NeighborSampler(topology, 3, device)
    model = SAGE(dim, classes).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for seeds in torch.randperm(num_nodes).split(8):
        nodes, center, neighbors = sampler.sample(seeds)
        x = feature[nodes]
        loss = nn.functional.cross_entropy(model(x, center, neighbors), labels[nodes[center]])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print(train())
