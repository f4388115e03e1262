# source: sbi-dev/sbi#520
# mechanism: in the second round parameters come from a posterior on the GPU and are stored beside those of the first round on the host
# expect: raises
from dataclasses import dataclass, field
from typing import List, Protocol, Tuple

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Proposal(Protocol):
    def sample(self, n: int) -> torch.Tensor: ...


class BoxPrior:
    def __init__(self, dim: int, bound: float):
        self.dim, self.bound = dim, bound

    def sample(self, n: int) -> torch.Tensor:
        return (torch.rand(n, self.dim) * 2 - 1) * self.bound


class GaussianEstimator(nn.Module):
    def __init__(self, theta_dim: int, x_dim: int, hidden: int = 20):
        super().__init__()
        self.theta_dim = theta_dim
        self.net = nn.Sequential(nn.Linear(x_dim, hidden), nn.ReLU(), nn.Linear(hidden, 2 * theta_dim))

    def params(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        loc, raw = self.net(x).split(self.theta_dim, dim=-1)
        return loc, nn.functional.softplus(raw) + 1e-3

    def log_prob(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return torch.distributions.Normal(*self.params(x)).log_prob(theta).sum(-1)


class Posterior:
    def __init__(self, net: GaussianEstimator, device: torch.device):
        self.net, self.device, self.x_o = net, device, None

    def set_default_x(self, x: torch.Tensor) -> "Posterior":
        self.x_o = x.to(self.device)
        return self

    @torch.no_grad()
    def sample(self, n: int) -> torch.Tensor:
        loc, scale = self.net.params(self.x_o.expand(n, -1))
        return loc + scale * torch.randn_like(loc)


@dataclass
class SimulationBank:
    theta: List[torch.Tensor] = field(default_factory=list)
    x: List[torch.Tensor] = field(default_factory=list)

    def append(self, theta: torch.Tensor, x: torch.Tensor) -> None:
        self.theta.append(theta)  # ROOT
        self.x.append(x)

    def dataset(self) -> TensorDataset:
        return TensorDataset(torch.cat(self.theta), torch.cat(self.x))  # RAISE # ALSO


def simulator(theta: torch.Tensor) -> torch.Tensor:
    theta = theta.cpu()
    return torch.cat([theta, theta.prod(1, keepdim=True)], dim=1) + 0.05 * torch.randn(len(theta), theta.shape[1] + 1)


class SNPE:
    def __init__(self, theta_dim: int, x_dim: int, device: torch.device):
        self.device = device
        self.net = GaussianEstimator(theta_dim, x_dim).to(device)
        self.bank = SimulationBank()

    def append_simulations(self, theta: torch.Tensor, x: torch.Tensor) -> "SNPE":
        self.bank.append(theta, x)  # ALSO
        return self

    def train(self, epochs: int = 2) -> GaussianEstimator:
        optimizer = torch.optim.Adam(self.net.parameters(), lr=1e-3)
        loader = DataLoader(self.bank.dataset(), batch_size=16, shuffle=True)
        for _ in range(epochs):
            for theta, x in loader:
                loss = -self.net.log_prob(theta.to(self.device), x.to(self.device)).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self.net


def run(num_rounds: int, device: torch.device) -> Posterior:
    x_o = torch.tensor([[0.3, -0.4, -0.12]])
    inference, proposal = SNPE(2, 3, device), BoxPrior(2, 1.5)
    for _ in range(num_rounds):
        theta = proposal.sample(32)  # ALSO
        net = inference.append_simulations(theta, simulator(theta)).train()
        proposal = Posterior(net, device).set_default_x(x_o)
    return proposal


if __name__ == "__main__":
    final = run(2, torch.device("cuda:0" if torch.cuda.is_available() else "cpu"))
    print(final.sample(100).mean(0).tolist())
