# source: pyg-team/pytorch_geometric#4910
# mechanism: an index table on the graph's device is filled with a range that is made on the host
# expect: raises
from typing import Dict, List, Tuple

import torch
from torch import nn

EdgeType = Tuple[str, str, str]


class HomogeneousGraph:
    def __init__(self, x, edge_index, node_type, edge_type):
        self.x, self.edge_index = x, edge_index
        self.node_type, self.edge_type = node_type, edge_type

    def to(self, device: torch.device) -> "HomogeneousGraph":
        return HomogeneousGraph(
            self.x.to(device), self.edge_index.to(device), self.node_type.to(device), self.edge_type.to(device)
        )

    def to_heterogeneous(self, node_names: List[str], edge_names: List[EdgeType]) -> "HeteroGraph":
        node_ids, index_map = {}, torch.empty_like(self.node_type)
        for i, _ in enumerate(node_names):
            node_ids[i] = (self.node_type == i).nonzero().view(-1)
            index_map[node_ids[i]] = torch.arange(len(node_ids[i]))  # RAISE # ROOT
        out = HeteroGraph()
        for i, name in enumerate(node_names):
            out.x_dict[name] = self.x[node_ids[i]]
        for i, key in enumerate(edge_names):
            edges = self.edge_index[:, self.edge_type == i]
            out.edge_index_dict[key] = torch.stack([index_map[edges[0]], index_map[edges[1]]])
        return out


class HeteroGraph:
    def __init__(self):
        self.x_dict: Dict[str, torch.Tensor] = {}
        self.edge_index_dict: Dict[EdgeType, torch.Tensor] = {}


class HeteroConv(nn.Module):
    def __init__(self, dim: int, hidden: int, node_names: List[str], edge_names: List[EdgeType]):
        super().__init__()
        self.root = nn.ModuleDict({n: nn.Linear(dim, hidden) for n in node_names})
        self.rel = nn.ModuleDict({"__".join(e): nn.Linear(dim, hidden) for e in edge_names})

    def forward(self, graph: HeteroGraph) -> Dict[str, torch.Tensor]:
        out = {n: self.root[n](x) for n, x in graph.x_dict.items()}
        for (src, rel, dst), edges in graph.edge_index_dict.items():
            messages = self.rel["__".join((src, rel, dst))](graph.x_dict[src])[edges[0]]
            out[dst] = out[dst].index_add(0, edges[1], messages)
        return {n: h.relu() for n, h in out.items()}


def random_academic_graph(n_author: int, n_paper: int, dim: int) -> HomogeneousGraph:
    gen = torch.Generator().manual_seed(2)
    node_type = torch.cat([torch.zeros(n_author), torch.ones(n_paper)]).long()
    writes = torch.stack([
        torch.randint(0, n_author, (40,), generator=gen),
        torch.randint(n_author, n_author + n_paper, (40,), generator=gen),
    ])
    cites = torch.randint(n_author, n_author + n_paper, (2, 30), generator=gen)
    edge_type = torch.cat([torch.zeros(40), torch.ones(30)]).long()
    x = torch.randn(n_author + n_paper, dim, generator=gen)
    return HomogeneousGraph(x, torch.cat([writes, cites], dim=1), node_type, edge_type)


def train(device: torch.device, steps: int = 3) -> float:
    node_names = ["author", "paper"]
    edge_names = [("author", "writes", "paper"), ("paper", "cites", "paper")]
    graph = random_academic_graph(10, 14, 6).to(device)
    hetero = graph.to_heterogeneous(node_names, edge_names)
    conv = HeteroConv(6, 12, node_names, edge_names).to(device)
    head = nn.Linear(12, 3).to(device)
    target = torch.randint(0, 3, (hetero.x_dict["paper"].shape[0],), device=device)
    optimizer = torch.optim.Adam([*conv.parameters(), *head.parameters()], lr=0.01)
    loss = torch.zeros(())
    for _ in range(steps):
        loss = nn.functional.cross_entropy(head(conv(hetero)["paper"]), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    print("loss", train(torch.device("cuda:0" if torch.cuda.is_available() else "cpu")))
