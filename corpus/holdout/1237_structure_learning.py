# source: mckinsey/causalnex PR#135
# mechanism: an outer optimizer that works on plain numbers writes the parameters back as new host tensors
# expect: raises
from dataclasses import dataclass
from typing import Callable, List

import torch
from torch import nn


class LocallyConnected(nn.Module):
    def __init__(self, nodes: int, in_features: int, out_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(nodes, in_features, out_features) * 0.1)
        self.bias = nn.Parameter(torch.zeros(nodes, out_features))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.einsum("bni,nio->bno", x, self.weight) + self.bias


class DAGLayer(nn.Module):
    def __init__(self, nodes: int, hidden: int):
        super().__init__()
        self.nodes, self.hidden = nodes, hidden
        self.fc_pos = nn.Parameter(torch.rand(nodes * hidden, nodes) * 0.1)
        self.fc_neg = nn.Parameter(torch.rand(nodes * hidden, nodes) * 0.1)

    @property
    def dag_weight(self) -> torch.Tensor:
        return self.fc_pos - self.fc_neg

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x @ self.dag_weight.T).view(-1, self.nodes, self.hidden)  # RAISE

    def adjacency(self) -> torch.Tensor:
        return self.dag_weight.view(self.nodes, self.hidden, self.nodes).pow(2).sum(1).T

    def h_func(self) -> torch.Tensor:
        adj = self.adjacency()
        return torch.trace(torch.matrix_exp(adj)) - self.nodes


@dataclass
class LineSearch:
    """Gradient steps on flat lists of numbers, as a minimizer outside of torch takes them."""

    step: float = 0.05
    max_iter: int = 3

    def minimize(self, func: Callable, x0: List[float]) -> List[float]:
        x = list(x0)
        for _ in range(self.max_iter):
            _, grad = func(x)
            x = [a - self.step * g for a, g in zip(x, grad)]
        return x


class NotearsMLP(nn.Module):
    def __init__(self, nodes: int, hidden: int, lasso: float = 0.01):
        super().__init__()
        self.dag_layer = DAGLayer(nodes, hidden)
        self.loc_lin = LocallyConnected(nodes, hidden, 1)
        self.lasso = lasso

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.loc_lin(torch.sigmoid(self.dag_layer(x))).squeeze(-1)

    def _flat_params(self) -> List[float]:
        return torch.cat([p.detach().flatten() for p in self.parameters()]).tolist()

    def _set_flat_params(self, flat: List[float]) -> None:
        n = 0
        for p in self.parameters():
            p.data = torch.tensor(flat[n: n + p.numel()]).view_as(p)  # ROOT
            n += p.numel()

    def _loss(self, x: torch.Tensor, rho: float, alpha: float) -> torch.Tensor:
        h = self.dag_layer.h_func()
        fit = (self(x) - x).pow(2).mean()
        return fit + 0.5 * rho * h * h + alpha * h + self.lasso * self.dag_layer.dag_weight.abs().sum()

    def dual_ascent_step(self, x: torch.Tensor, rho: float, alpha: float) -> float:
        def func(flat: List[float]):
            self._set_flat_params(flat)
            self.zero_grad()
            loss = self._loss(x, rho, alpha)
            loss.backward()
            return loss.item(), torch.cat([p.grad.flatten() for p in self.parameters()]).tolist()

        self._set_flat_params(LineSearch().minimize(func, self._flat_params()))
        with torch.no_grad():
            return self.dag_layer.h_func().item()

    def fit(self, x: torch.Tensor, max_iter: int = 3) -> "NotearsMLP":
        rho, alpha = 1.0, 0.0
        for _ in range(max_iter):
            h = self.dual_ascent_step(x, rho, alpha)
            alpha, rho = alpha + rho * h, rho * 2
        return self


def from_samples(x: torch.Tensor, device: torch.device) -> torch.Tensor:
    model = NotearsMLP(x.shape[1], hidden=4).to(device)
    model.fit(x.to(device))
    return model.dag_layer.adjacency().detach().sqrt().cpu()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    a = torch.randn(40)
    data = torch.stack([a, a.tanh() + 0.1 * torch.randn(40), torch.randn(40)], dim=1)
    print(from_samples(data, device))


if __name__ == "__main__":
    main()
