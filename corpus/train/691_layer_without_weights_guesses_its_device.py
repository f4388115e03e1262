# source: awslabs/graphstorm PR#30, PR#33
# mechanism: [device guessed] an input layer takes its device from its first parameter; for nodes that have learnable embeddings alone, kept in host memory, it has none and says CPU
# phase: forward; failing op: aten::addmm
# expect: raises
import torch
import torch.nn as nn


class HostTable:
    """Learnable rows, updated by a server of their own."""

    def __init__(self, rows, dim):
        self.rows = torch.randn(rows, dim) * 0.1

    def __call__(self, ids):
        return self.rows[ids.cpu()]


class NodeInput(nn.Module):
    def __init__(self, feature_dims, table_sizes, dim):
        super().__init__()
        self.project = nn.ModuleDict({t: nn.Linear(d, dim) for t, d in feature_dims.items()})
        self.tables = {t: HostTable(n, dim) for t, n in table_sizes.items()}

    @property
    def device(self):
        first = next(self.parameters(), None)
        return torch.device("cpu") if first is None else first.device

    def forward(self, ids, features):
        out = {}
        for ntype, index in ids.items():
            if ntype in self.tables:
                out[ntype] = self.tables[ntype](index).to(self.device)  # ROOT
            else:
                out[ntype] = self.project[ntype](features[ntype])
        return out


class Scorer(nn.Module):
    def __init__(self, inputs, dim):
        super().__init__()
        self.inputs = inputs
        self.user, self.book = nn.Linear(dim, dim), nn.Linear(dim, dim)

    def forward(self, ids, features=None):
        h = self.inputs(ids, features or {})
        return (self.user(h["user"]) * self.book(h["book"])).sum(-1)  # RAISE


device = torch.device("cuda:0")
inputs = NodeInput(feature_dims={}, table_sizes={"user": 100, "book": 300}, dim=8)
model = Scorer(inputs, dim=8).to(device)
loans = {"user": torch.randint(0, 100, (16,), device=device),
         "book": torch.randint(0, 300, (16,), device=device)}
loss = nn.functional.softplus(-model(loans)).mean()
loss.backward()
