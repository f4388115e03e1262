# source: DSE-MSU/DeepRobust#86
# mechanism: a helper asks only whether the adjacency matrix is on CUDA and then makes the self-loops on the default GPU, not on the matrix's
# expect: raises
# needs: 2 GPUs
from typing import List, Optional, Tuple

import torch
from torch import nn


def to_tensor(adj: torch.Tensor, features: torch.Tensor, labels: torch.Tensor, device: torch.device):
    return adj.to(device), features.to(device), labels.to(device)


def normalize_adj_tensor(adj: torch.Tensor) -> torch.Tensor:
    device = torch.device("cuda" if adj.is_cuda else "cpu")  # ROOT
    self_loops = torch.eye(adj.shape[0]).to(device)  # ALSO
    mx = adj + self_loops  # RAISE
    r_inv = mx.sum(1).pow(-0.5)
    r_inv = torch.where(torch.isinf(r_inv), torch.zeros_like(r_inv), r_inv)
    return r_inv[:, None] * mx * r_inv[None, :]


def preferential_graph(n: int, m: int) -> torch.Tensor:
    gen = torch.Generator().manual_seed(15)
    adj = torch.zeros(n, n)
    for node in range(1, n):
        weights = adj[:node].sum(1) + 1
        targets = torch.multinomial(weights, min(m, node), generator=gen)
        adj[node, targets] = 1
        adj[targets, node] = 1
    return adj


class GraphConvolution(nn.Module):
    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(in_features, out_features))
        self.bias = nn.Parameter(torch.zeros(out_features))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: torch.Tensor, adj: torch.Tensor) -> torch.Tensor:
        return adj @ (x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat: int, nhid: int, nclass: int, device: torch.device, lr: float = 0.01):
        super().__init__()
        self.device, self.lr = device, lr
        self.gc1, self.gc2 = GraphConvolution(nfeat, nhid), GraphConvolution(nhid, nclass)
        self.adj_norm: Optional[torch.Tensor] = None

    def forward(self, x: torch.Tensor, adj: torch.Tensor) -> torch.Tensor:
        return torch.log_softmax(self.gc2(self.gc1(x, adj).relu(), adj), dim=1)

    def fit(self, adj, features, labels, idx_train: List[int], train_iters: int = 5) -> float:
        adj, features, labels = to_tensor(adj, features, labels, device=self.device)
        self.adj_norm = normalize_adj_tensor(adj)
        self.features, self.labels = features, labels
        optimizer = torch.optim.Adam(self.parameters(), lr=self.lr)
        loss = torch.zeros(())
        for _ in range(train_iters):
            optimizer.zero_grad()
            output = self(self.features, self.adj_norm)
            loss = nn.functional.nll_loss(output[idx_train], self.labels[idx_train])
            loss.backward()
            optimizer.step()
        return loss.item()


class GradientAttack:
    """Flips the edges of a node whose gradient hurts the surrogate most."""

    def __init__(self, surrogate: GCN):
        self.surrogate = surrogate

    def attack(self, adj: torch.Tensor, target: int, n_perturbations: int) -> Tuple[torch.Tensor, List[int]]:
        modified = adj.to(self.surrogate.device).clone()
        flipped: List[int] = []
        for _ in range(n_perturbations):
            trial = modified.clone().requires_grad_(True)
            output = self.surrogate(self.surrogate.features, normalize_adj_tensor(trial))
            loss = nn.functional.nll_loss(output[[target]], self.surrogate.labels[[target]])
            grad = torch.autograd.grad(loss, trial)[0][target] * (1 - 2 * modified[target])
            grad[flipped + [target]] = -float("inf")
            other = int(grad.argmax())
            modified[target, other] = modified[other, target] = 1 - modified[target, other]
            flipped.append(other)
        return modified.cpu(), flipped


def main() -> None:
    device = torch.device("cuda:1")
    adj = preferential_graph(24, 2)
    features, labels = torch.rand(24, 10), torch.randint(0, 3, (24,))
    surrogate = GCN(10, 8, 3, device=device).to(device)
    print("loss", surrogate.fit(adj, features, labels, idx_train=list(range(12))))
    _, flipped = GradientAttack(surrogate).attack(adj, target=3, n_perturbations=2)
    print("flipped", flipped)


if __name__ == "__main__":
    main()
