# source: sbi-dev/sbi#560
# mechanism: a product prior collects the support checks of its parts in a host tensor, filled by slices, which later is the condition of a where
# expect: raises
from typing import List, Sequence

import torch
from torch import nn
from torch.distributions import Independent, Normal, Uniform
from torch.distributions.constraints import Constraint


class BoxUniform(Independent):
    def __init__(self, low: torch.Tensor, high: torch.Tensor):
        super().__init__(Uniform(low, high, validate_args=False), 1, validate_args=False)


class ProductConstraint(Constraint):
    def __init__(self, dists: Sequence[Independent]):
        self.constraints = [d.support for d in dists]
        self.sizes = [d.event_shape[0] for d in dists]

    def check(self, value: torch.Tensor) -> torch.Tensor:
        result = torch.zeros(value.shape[0], len(self.constraints), dtype=torch.bool)  # ROOT
        parts = value.split(self.sizes, dim=-1)
        for i, (constraint, part) in enumerate(zip(self.constraints, parts)):
            result[:, i] = constraint.check(part)
        return result.all(dim=1)  # ALSO


class MultipleIndependent:
    def __init__(self, dists: List[Independent]):
        self.dists = dists
        self.support = ProductConstraint(dists)

    def sample(self, n: int) -> torch.Tensor:
        return torch.cat([d.sample((n,)) for d in self.dists], dim=-1)

    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        parts = value.split(self.support.sizes, dim=-1)
        return sum(d.log_prob(p) for d, p in zip(self.dists, parts))


def within_support(distribution: MultipleIndependent, samples: torch.Tensor) -> torch.Tensor:
    return distribution.support.check(samples)


class ConditionalDensity(nn.Module):
    def __init__(self, theta_dim: int, x_dim: int):
        super().__init__()
        self.loc = nn.Linear(x_dim, theta_dim)
        self.log_scale = nn.Parameter(torch.zeros(theta_dim))

    def log_prob(self, theta: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
        return Normal(self.loc(context), self.log_scale.exp()).log_prob(theta).sum(-1)


class DirectPosterior:
    def __init__(self, prior: MultipleIndependent, net: ConditionalDensity, device: torch.device):
        self.prior, self.net, self.device = prior, net, device

    def log_prob(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        theta = theta.to(self.device)
        unnorm = self.net.log_prob(theta, x.to(self.device).expand(len(theta), -1))
        in_support = within_support(self.prior, theta)  # ALSO
        floor = torch.full_like(unnorm, float("-inf"))
        return torch.where(in_support, unnorm, floor)  # RAISE

    def map(self, x: torch.Tensor, num_init: int = 40, num_iter: int = 4) -> torch.Tensor:
        inits = self.prior.sample(num_init)
        with torch.no_grad():
            best = self.log_prob(inits, x).topk(5).indices
        theta = inits[best].clone().requires_grad_(True)
        optimizer = torch.optim.Adam([theta], lr=0.01)
        for _ in range(num_iter):
            loss = -self.log_prob(theta, x).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return theta.detach()[0]


def build_prior(device: torch.device) -> MultipleIndependent:
    rate = BoxUniform(torch.zeros(1, device=device), 2 * torch.ones(1, device=device))
    shape = BoxUniform(-torch.ones(2, device=device), torch.ones(2, device=device))
    return MultipleIndependent([rate, shape])


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = ConditionalDensity(3, 4).to(device)
    posterior = DirectPosterior(build_prior(device), net, device)
    print("map", posterior.map(torch.randn(1, 4)).tolist())


if __name__ == "__main__":
    main()
