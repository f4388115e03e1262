# source: openforcefield/smee PR#83
# mechanism: a template of all parameter values is rebuilt from numbers on the host, and the free values, which are on the GPU, are written into it by an index
# expect: raises
from dataclasses import dataclass
from typing import Callable, Dict, List, Tuple

import torch


@dataclass
class ForceField:
    """Parameters of harmonic bonds: a row (force constant, length) for each bond type."""

    parameters: torch.Tensor
    columns: Tuple[str, ...] = ("k", "length")

    def to(self, device: torch.device) -> "ForceField":
        return ForceField(self.parameters.to(device), self.columns)


@dataclass
class ParameterConfig:
    cols: List[str]
    scales: Dict[str, float]


class Trainable:
    def __init__(self, force_field: ForceField, config: ParameterConfig):
        self._ff, self.config = force_field, config
        n_rows, n_cols = force_field.parameters.shape
        self._shape = (n_rows, n_cols)
        self.device = force_field.parameters.device
        values = force_field.parameters.flatten().tolist()
        free = [i * n_cols + j for i in range(n_rows) for j, c in enumerate(force_field.columns) if c in config.cols]
        scales = [config.scales.get(force_field.columns[i % n_cols], 1.0) for i in free]
        self._values = torch.tensor(values)  # ROOT
        self._free = torch.tensor(free)
        self._scales = torch.tensor(scales, device=self.device)

    def to_values(self) -> torch.Tensor:
        flat = self._ff.parameters.flatten()
        return (flat[self._free] * self._scales).detach()

    def to_force_field(self, values: torch.Tensor) -> ForceField:
        flat = self._values.clone()  # ALSO
        flat[self._free] = values / self._scales  # RAISE
        return ForceField(flat.view(self._shape), self._ff.columns)


class LevenbergMarquardt:
    def __init__(self, mu: float = 1.0, adaptive: float = 4.0, max_steps: int = 4):
        self.mu, self.adaptive, self.max_steps = mu, adaptive, max_steps

    def step(self, residual_fn: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Tuple[torch.Tensor, float]:
        x = x.detach().requires_grad_(True)
        residual = residual_fn(x)
        rows = [torch.autograd.grad(r, x, retain_graph=True)[0] for r in residual]
        jacobian = torch.stack(rows)
        hessian = jacobian.T @ jacobian
        damping = self.mu * torch.diag(hessian.diagonal().clamp_min(1e-8))
        delta = torch.linalg.solve(hessian + damping, jacobian.T @ residual)
        return (x - delta).detach(), residual.pow(2).sum().item()

    def minimize(self, residual_fn: Callable, x: torch.Tensor) -> Tuple[torch.Tensor, List[float]]:
        history: List[float] = []
        for _ in range(self.max_steps):
            candidate, loss = self.step(residual_fn, x)
            with torch.no_grad():
                new_loss = residual_fn(candidate).pow(2).sum().item()
            if new_loss < loss:
                x, self.mu = candidate, self.mu / self.adaptive
            else:
                self.mu *= self.adaptive
            history.append(min(loss, new_loss))
        return x, history


def bond_energy(ff: ForceField, distances: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
    k, length = ff.parameters[types].unbind(-1)
    return (0.5 * k * (distances - length).pow(2)).sum(-1)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    reference = ForceField(torch.tensor([[3.0, 1.1], [5.0, 1.4], [4.0, 1.2]])).to(device)
    guess = ForceField(torch.tensor([[2.0, 1.0], [4.0, 1.5], [4.0, 1.3]])).to(device)
    distances = (1.0 + 0.8 * torch.rand(20, 5)).to(device)
    types = torch.randint(0, 3, (20, 5)).to(device)
    target = bond_energy(reference, distances, types)
    trainable = Trainable(guess, ParameterConfig(cols=["k", "length"], scales={"k": 0.1}))

    def residuals(values: torch.Tensor) -> torch.Tensor:
        return bond_energy(trainable.to_force_field(values), distances, types) - target

    values, history = LevenbergMarquardt().minimize(residuals, trainable.to_values())
    print(history, trainable.to_force_field(values).parameters.tolist())


if __name__ == "__main__":
    main()
