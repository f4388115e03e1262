# source: cornellius-gp/gpytorch#981
# mechanism: a kernel keeps its inducing grid in a plain list, so that moving the model leaves the grid behind
# expect: raises
from typing import List, Tuple

import torch
from torch import nn


class RBFKernel(nn.Module):
    def __init__(self):
        super().__init__()
        self.raw_lengthscale = nn.Parameter(torch.zeros(1))

    @property
    def lengthscale(self) -> torch.Tensor:
        return nn.functional.softplus(self.raw_lengthscale)

    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        d = (x1.unsqueeze(-2) - x2.unsqueeze(-3)) / self.lengthscale
        return torch.exp(-0.5 * d.pow(2).sum(-1))


def create_grid(sizes: List[int], bounds: List[Tuple[float, float]]) -> List[torch.Tensor]:
    grid = []
    for size, (low, high) in zip(sizes, bounds):
        step = (high - low) / (size - 2)
        grid.append(torch.linspace(low - step, high + step, size))
    return grid


class GridInterpolationKernel(nn.Module):
    def __init__(self, base_kernel: RBFKernel, grid_size: int, bounds: List[Tuple[float, float]]):
        super().__init__()
        self.base_kernel = base_kernel
        grid = create_grid([grid_size] * len(bounds), bounds)
        self.num_dims = len(grid)
        self.grid = grid  # ROOT

    def _inducing_covariance(self) -> torch.Tensor:
        full = None
        for axis in self.grid:
            k = self.base_kernel(axis.unsqueeze(-1), axis.unsqueeze(-1))
            full = k if full is None else torch.kron(full, k)
        return full

    def _weights(self, x: torch.Tensor) -> torch.Tensor:
        weights = None
        for dim in range(self.num_dims):
            axis = self.grid[dim]
            step = axis[1] - axis[0]
            w = torch.relu(1 - (x[:, dim, None] - axis).abs() / step)  # RAISE
            weights = w if weights is None else (weights[:, :, None] * w[:, None, :]).flatten(1)
        return weights

    def forward(self, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        return self._weights(x1) @ self._inducing_covariance() @ self._weights(x2).T


class GPRegression(nn.Module):
    def __init__(self, train_x: torch.Tensor, train_y: torch.Tensor):
        super().__init__()
        self.train_x, self.train_y = train_x, train_y
        self.mean = nn.Parameter(torch.zeros(1))
        self.raw_noise = nn.Parameter(torch.zeros(1))
        self.covar = GridInterpolationKernel(RBFKernel(), 6, [(0.0, 1.0)] * train_x.shape[1])

    def neg_mll(self) -> torch.Tensor:
        n = self.train_x.shape[0]
        cov = self.covar(self.train_x, self.train_x)
        cov = cov + nn.functional.softplus(self.raw_noise) * torch.eye(n, device=cov.device)
        chol = torch.linalg.cholesky(cov)
        diff = (self.train_y - self.mean).unsqueeze(-1)
        alpha = torch.cholesky_solve(diff, chol)
        return 0.5 * (diff * alpha).sum() + chol.diagonal().log().sum()


def fit(model: GPRegression, steps: int) -> float:
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    loss = torch.zeros(())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model.neg_mll()
        loss.backward()
        optimizer.step()
    return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.rand(20, 2, device=device)
    y = torch.sin(6 * x[:, 0]) * x[:, 1]
    model = GPRegression(x, y).to(device)
    print("nll", fit(model, 5))


if __name__ == "__main__":
    main()
