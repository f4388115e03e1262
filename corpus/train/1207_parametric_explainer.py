# source: pyg-team/pytorch_geometric#6620
# mechanism: an explainer algorithm has a network of its own, made by the user beside a model that is on the GPU, and nobody moves it
# expect: raises
from dataclasses import dataclass
from typing import Optional

import torch
from torch import nn


@dataclass
class Explanation:
    edge_mask: torch.Tensor
    edge_index: torch.Tensor

    def top_edges(self, k: int) -> torch.Tensor:
        return self.edge_index[:, self.edge_mask.topk(k).indices]


class GCN(nn.Module):
    def __init__(self, in_dim: int, hidden: int, classes: int):
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(in_dim, hidden), nn.Linear(hidden, classes)

    def propagate(self, x: torch.Tensor, edge_index: torch.Tensor, weight: Optional[torch.Tensor]) -> torch.Tensor:
        messages = x[edge_index[0]]
        if weight is not None:
            messages = messages * weight[:, None]
        return torch.zeros_like(x).index_add(0, edge_index[1], messages) + x

    def embed(self, x: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        return self.propagate(self.lin1(x), edge_index, None).relu()

    def forward(self, x, edge_index, edge_weight=None) -> torch.Tensor:
        h = self.propagate(self.lin1(x), edge_index, edge_weight).relu()
        return self.propagate(self.lin2(h), edge_index, edge_weight)


class PGExplainer(nn.Module):
    def __init__(self, epochs: int, hidden: int, lr: float = 0.003, temp: float = 2.0):
        super().__init__()
        self.epochs, self.lr, self.temp = epochs, lr, temp
        self.mlp = nn.Sequential(nn.Linear(2 * hidden, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.mlp.parameters(), lr=lr)

    def _edge_logits(self, emb: torch.Tensor, edge_index: torch.Tensor) -> torch.Tensor:
        pairs = torch.cat([emb[edge_index[0]], emb[edge_index[1]]], dim=-1)
        return self.mlp(pairs).view(-1)  # RAISE

    def _concrete(self, logits: torch.Tensor) -> torch.Tensor:
        eps = torch.rand_like(logits).clamp(0.01, 0.99)
        return ((eps.log() - (1 - eps).log() + logits) / self.temp).sigmoid()

    def train_step(self, model: GCN, x, edge_index, target) -> float:
        emb = model.embed(x, edge_index).detach()
        self.optimizer.zero_grad()
        mask = self._concrete(self._edge_logits(emb, edge_index))
        loss = nn.functional.cross_entropy(model(x, edge_index, mask), target) + 0.05 * mask.mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    @torch.no_grad()
    def forward(self, model: GCN, x, edge_index) -> torch.Tensor:
        return self._edge_logits(model.embed(x, edge_index), edge_index).sigmoid()


class Explainer:
    def __init__(self, model: GCN, algorithm: PGExplainer):
        self.model = model.eval()
        self.algorithm = algorithm  # ALSO

    def fit(self, x: torch.Tensor, edge_index: torch.Tensor) -> None:
        target = self.model(x, edge_index).argmax(1)
        for _ in range(self.algorithm.epochs):
            self.algorithm.train_step(self.model, x, edge_index, target)

    def __call__(self, x: torch.Tensor, edge_index: torch.Tensor) -> Explanation:
        return Explanation(self.algorithm(self.model, x, edge_index), edge_index)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(1)
    x = torch.randn(16, 6, device=device)
    edge_index = torch.randint(0, 16, (2, 50), device=device)
    model = GCN(6, 12, 3).to(device)
    explainer = Explainer(
        model=model,
        algorithm=PGExplainer(epochs=3, hidden=12),  # ROOT
    )
    explainer.fit(x, edge_index)
    print(explainer(x, edge_index).top_edges(5).tolist())


if __name__ == "__main__":
    main()
