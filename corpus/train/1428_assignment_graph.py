# source: rusty1s/pytorch_sparse#114
# mechanism: an instance's sparse adjacency is built from host indices and is left on the host when features and model go to the GPU
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class MipInstance:
    variables: torch.Tensor
    constraints: torch.Tensor
    adj_t: torch.Tensor
    label: torch.Tensor


def make_instance(num_vars, num_cons, seed):
    gen = torch.Generator().manual_seed(seed)
    dense = torch.rand(num_cons, num_vars, generator=gen)
    dense = torch.where(dense > 0.5, dense, torch.zeros_like(dense))
    return MipInstance(
        variables=torch.rand(num_vars, 3, generator=gen),
        constraints=torch.rand(num_cons, 2, generator=gen),
        adj_t=dense.to_sparse_coo().coalesce(),
        label=(torch.rand(num_vars, generator=gen) > 0.5).float(),
    )


class BipartiteConv(nn.Module):
    def __init__(self, src, dst, out):
        super().__init__()
        self.message = nn.Linear(src, out)
        self.update = nn.Linear(dst + out, out)

    def forward(self, adj, src, dst):
        gathered = torch.sparse.mm(adj, self.message(src))  # RAISE
        return torch.relu(self.update(torch.cat([dst, gathered], dim=-1)))


class MipNet(nn.Module):
    def __init__(self, hidden=8):
        super().__init__()
        self.to_cons = BipartiteConv(3, 2, hidden)
        self.to_vars = BipartiteConv(hidden, 3, hidden)
        self.head = nn.Linear(hidden, 1)

    def forward(self, variables, constraints, adj_t):
        cons = self.to_cons(adj_t, variables, constraints)
        out = self.to_vars(adj_t.t().coalesce(), cons, variables)
        return self.head(out).squeeze(-1)


class Solver:
    def __init__(self, device):
        self.device = device
        self.model = MipNet().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-2)

    def prepare(self, instance):
        variables = instance.variables.to(self.device)
        constraints = instance.constraints.to(self.device)
        adj_t = instance.adj_t  # ROOT
        return variables, constraints, adj_t  # ALSO

    def step(self, instance):
        logits = self.model(*self.prepare(instance))
        loss = nn.functional.binary_cross_entropy_with_logits(logits, instance.label.to(self.device))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def solve(self, instance):
        return (self.model(*self.prepare(instance)) > 0).long().cpu()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    solver = Solver(device)
    instances = [make_instance(6, 4, seed) for seed in range(3)]
    for instance in instances:
        print(solver.step(instance))
    print(solver.solve(instances[0]).tolist())


if __name__ == "__main__":
    main()
