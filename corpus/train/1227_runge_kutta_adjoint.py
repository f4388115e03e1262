# source: tksmatsubara/symplectic-adjoint-method#3
# mechanism: the coefficients of the higher-order solvers are module-level host tensors that the stage sums contract with the states
# expect: raises
from typing import Callable, Dict, NamedTuple, Optional

import torch
from torch import nn


class ButcherTableau(NamedTuple):
    a: torch.Tensor
    b: torch.Tensor
    c: torch.Tensor

    @property
    def stages(self) -> int:
        return self.b.shape[0]


RK4 = ButcherTableau(
    a=torch.tensor([[0.0, 0, 0, 0], [0.5, 0, 0, 0], [0, 0.5, 0, 0], [0, 0, 1.0, 0]]),
    b=torch.tensor([1 / 6, 1 / 3, 1 / 3, 1 / 6]),
    c=torch.tensor([0.0, 0.5, 0.5, 1.0]),
)
RALSTON = ButcherTableau(
    a=torch.tensor([[0.0, 0.0], [2 / 3, 0.0]]),
    b=torch.tensor([0.25, 0.75]),
    c=torch.tensor([0.0, 2 / 3]),
)


class Euler:
    def __init__(self, func: Callable, y0: torch.Tensor):
        self.func = func

    def step(self, t: torch.Tensor, dt: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return y + dt * self.func(t, y)


class ExplicitRungeKutta:
    tableau: ButcherTableau

    def __init__(self, func: Callable, y0: torch.Tensor):
        self.func = func
        self.coeffs = self.tableau  # ROOT

    def _combine(self, weights: torch.Tensor, ks: torch.Tensor) -> torch.Tensor:
        return torch.tensordot(weights, ks, dims=1)  # RAISE # ALSO

    def step(self, t: torch.Tensor, dt: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        ks = self.func(t, y).unsqueeze(0)
        for i in range(1, self.coeffs.stages):
            yi = y + dt * self._combine(self.coeffs.a[i, :i], ks)
            ki = self.func(t + self.coeffs.c[i] * dt, yi)
            ks = torch.cat([ks, ki.unsqueeze(0)])
        return y + dt * self._combine(self.coeffs.b, ks)


class RK4Solver(ExplicitRungeKutta):
    tableau = RK4


class RalstonSolver(ExplicitRungeKutta):
    tableau = RALSTON


SOLVERS: Dict[str, type] = {"euler": Euler, "rk4": RK4Solver, "ralston": RalstonSolver}


def odeint(func: Callable, y0: torch.Tensor, t: torch.Tensor, method: str = "rk4", max_step: Optional[float] = None):
    solver = SOLVERS[method](func, y0)
    t = t.to(y0)
    ys, y = [y0], y0
    for t0, t1 in zip(t[:-1], t[1:]):
        n = 1 if max_step is None else max(1, int(((t1 - t0) / max_step).ceil()))
        dt = (t1 - t0) / n
        for j in range(n):
            y = solver.step(t0 + j * dt, dt, y)
        ys.append(y)
    return torch.stack(ys)


class HamiltonianField(nn.Module):
    def __init__(self, hidden: int = 16):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.register_buffer("symplectic", torch.tensor([[0.0, 1.0], [-1.0, 0.0]]))

    def forward(self, t: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            if not y.requires_grad:
                y = y.detach().requires_grad_(True)
            energy = self.net(y).sum()
            grad = torch.autograd.grad(energy, y, create_graph=True)[0]
        return grad @ self.symplectic.T


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    field = HamiltonianField().to(device)
    t = torch.linspace(0, 1, 5)
    y0 = torch.randn(8, 2, device=device)
    angle = -t.to(device).view(-1, 1)
    truth = torch.stack([y0[:, 0] * angle.cos() - y0[:, 1] * angle.sin(), y0[:, 0] * angle.sin() + y0[:, 1] * angle.cos()], -1)
    optimizer = torch.optim.Adam(field.parameters(), lr=1e-2)
    for method in ("euler", "ralston", "rk4"):
        loss = nn.functional.mse_loss(odeint(field, y0, t, method=method), truth)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(method, loss.item())


if __name__ == "__main__":
    main()
