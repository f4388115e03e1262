# source: thibmonsel/torchdde#43
# mechanism: the tables of a solver are class attributes on the CPU; its own to() was never called
# phase: training loop, first step of the integration; einsum
# expect: raises
import torch
from torch import nn


class FixedSolver:
    def step(self, func, t, y, dt, args):
        raise NotImplementedError


class BogackiShampine(FixedSolver):
    lower = (
        torch.tensor([1 / 2]),
        torch.tensor([0.0, 3 / 4]),
        torch.tensor([2 / 9, 1 / 3, 4 / 9]),
    )
    sol = (torch.tensor([2 / 9, 1 / 3, 4 / 9, 0.0]),)
    nodes = (torch.tensor([1 / 2, 3 / 4, 1.0]),)

    def to(self, device):
        self.lower = tuple(a.to(device) for a in self.lower)
        self.sol = tuple(b.to(device) for b in self.sol)
        self.nodes = tuple(c.to(device) for c in self.nodes)

    def step(self, func, t, y, dt, args):
        k = [func(t, y, args)]  # ALSO
        for ci, ai in zip(self.nodes[0], self.lower):
            ki = func(
                t + dt * ci,
                y + dt * torch.einsum("s, sbf -> bf", ai, torch.stack(k)),  # RAISE
                args,
            )
            k.append(ki)
        return y + dt * torch.einsum("s, sbf -> bf", self.sol[0], torch.stack(k))


def integrate(func, solver, t0, t1, ts, y0, args=None, dt=0.1):
    out, y, t = [y0], y0, t0  # ALSO
    while t < t1 - 1e-6:
        y = solver.step(func, t, y, dt, args)
        t = t + dt
        out.append(y)
    return torch.stack(out[: len(ts)], dim=1)


class Drift(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 24), nn.Tanh(), nn.Linear(24, dim))

    def forward(self, t, y, args):
        return self.net(y)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
ts = torch.linspace(0, 1, 11).to(device)
target = torch.exp(-ts)[None, :, None].repeat(8, 1, 2)
model = Drift(2).to(device)
solver = BogackiShampine()  # ROOT
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(3):
    pred = integrate(model, solver, ts[0], ts[-1], ts, target[:, 0])
    loss = torch.mean((pred - target) ** 2)
    opt.zero_grad()
    loss.backward()
    opt.step()
