# source: sbi-dev/sbi#538
# mechanism: an analysis tool trains a regression network on the host and later feeds it with samples of a posterior that lives on the GPU
# expect: raises
from typing import Callable, Tuple

import torch
from torch import nn


class FlowPosterior:
    """A trained posterior; samples stay on the device of the density estimator."""

    def __init__(self, dim: int, device: str):
        self._device = device
        self.loc = torch.linspace(-1, 1, dim, device=device)
        self.scale = torch.full((dim,), 0.5, device=device)

    def sample(self, shape: Tuple[int, ...]) -> torch.Tensor:
        return self.loc + self.scale * torch.randn(*shape, self.loc.shape[0], device=self._device)

    def log_prob(self, theta: torch.Tensor) -> torch.Tensor:
        return torch.distributions.Normal(self.loc, self.scale).log_prob(theta).sum(-1)


class ZScore(nn.Module):
    def __init__(self, batch: torch.Tensor):
        super().__init__()
        self.register_buffer("mean", batch.mean(0))
        self.register_buffer("std", batch.std(0))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - self.mean) / self.std  # RAISE


def build_regression_net(theta: torch.Tensor, hidden: int = 12) -> nn.Module:
    return nn.Sequential(ZScore(theta), nn.Linear(theta.shape[1], hidden), nn.Tanh(), nn.Linear(hidden, 1))


class ActiveSubspace:
    def __init__(self, posterior: FlowPosterior):
        self._posterior = posterior
        self._device = posterior._device
        self._net = None

    def add_property(self, theta: torch.Tensor, emergent_property: torch.Tensor) -> "ActiveSubspace":
        self._theta, self._property = theta, emergent_property
        return self

    def train(self, epochs: int = 5, batch_size: int = 20) -> nn.Module:
        self._net = build_regression_net(self._theta)
        optimizer = torch.optim.Adam(self._net.parameters(), lr=5e-3)
        for _ in range(epochs):
            for idx in torch.randperm(len(self._theta)).split(batch_size):
                loss = nn.functional.mse_loss(self._net(self._theta[idx]), self._property[idx])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return self._net.eval()  # ROOT

    def _gradients(self, forward: Callable, theta: torch.Tensor) -> torch.Tensor:
        theta = theta.detach().requires_grad_(True)
        forward(theta).sum().backward()
        return theta.grad

    def find_directions(self, n_samples: int = 50) -> Tuple[torch.Tensor, torch.Tensor]:
        theta = self._posterior.sample((n_samples,))
        grads = self._gradients(self._net, theta)  # ALSO
        scaled = grads * theta.std(0)
        outer = torch.einsum("bi,bj->ij", scaled, scaled) / n_samples
        return torch.linalg.eigh(outer)

    def project(self, theta: torch.Tensor, vectors: torch.Tensor, k: int) -> torch.Tensor:
        return (theta.to(vectors.device) - self._posterior.loc) @ vectors[:, -k:]


def main() -> None:
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    posterior = FlowPosterior(3, device)
    theta = posterior.sample((60,)).cpu()
    energy = theta[:, :1].pow(2) + 0.1 * theta[:, 1:2]
    sensitivity = ActiveSubspace(posterior).add_property(theta, energy)
    sensitivity.train()
    values, vectors = sensitivity.find_directions()
    print(values.tolist(), sensitivity.project(theta, vectors, 1).shape)


if __name__ == "__main__":
    main()
