# source: sbi-dev/sbi#728
# mechanism: without a prior one is built from the training parameters on the GPU, and its sample weights are made on the host
# expect: raises
from typing import Optional, Tuple

import torch
from torch import nn
from torch.distributions import AffineTransform, Normal


class Empirical:
    """Weighted samples as a distribution."""

    def __init__(self, samples: torch.Tensor, log_weights: torch.Tensor):
        if samples.shape[0] != log_weights.shape[0]:
            raise ValueError("one weight for each sample")
        self._samples = samples
        self._probs = torch.softmax(log_weights, dim=0)

    def _weighted(self, value: torch.Tensor) -> torch.Tensor:
        probs = self._probs.view(-1, *[1] * (value.dim() - 1))
        return (value * probs).sum(0)  # RAISE

    @property
    def mean(self) -> torch.Tensor:
        return self._weighted(self._samples)

    @property
    def stddev(self) -> torch.Tensor:
        return self._weighted((self._samples - self.mean).pow(2)).sqrt()


class ImproperEmpirical(Empirical):
    def log_prob(self, value: torch.Tensor) -> torch.Tensor:
        return torch.zeros(value.shape[0], device=value.device)


class MixtureNet(nn.Module):
    def __init__(self, x_dim: int, theta_dim: int):
        super().__init__()
        self.theta_dim = theta_dim
        self.net = nn.Sequential(nn.Linear(x_dim, 16), nn.ReLU(), nn.Linear(16, 2 * theta_dim))

    def log_prob(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        loc, log_scale = self.net(x).split(self.theta_dim, dim=-1)
        return Normal(loc, log_scale.exp()).log_prob(theta).sum(-1)


def theta_transform(prior) -> AffineTransform:
    return AffineTransform(loc=prior.mean, scale=prior.stddev)


class PosteriorInference:
    def __init__(self, prior: Optional[Empirical] = None, device: str = "cpu"):
        self._prior, self._device = prior, torch.device(device)
        self._theta = self._x = None

    def append_simulations(self, theta: torch.Tensor, x: torch.Tensor) -> "PosteriorInference":
        self._theta, self._x = theta.to(self._device), x.to(self._device)
        if self._prior is None:
            log_weights = torch.zeros(self._theta.shape[0])  # ROOT
            self._prior = ImproperEmpirical(self._theta, log_weights)  # ALSO
        return self

    def train(self, epochs: int = 3, batch_size: int = 16) -> MixtureNet:
        net = MixtureNet(self._x.shape[1], self._theta.shape[1]).to(self._device)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        for _ in range(epochs):
            for idx in torch.randperm(len(self._x), device=self._device).split(batch_size):
                loss = -net.log_prob(self._theta[idx], self._x[idx]).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return net

    def build_posterior(self, net: MixtureNet) -> "Potential":
        return Potential(net, self._prior, theta_transform(self._prior))


class Potential:
    def __init__(self, net: MixtureNet, prior, transform: AffineTransform):
        self.net, self.prior, self.transform = net, prior, transform

    @torch.no_grad()
    def __call__(self, unconstrained: torch.Tensor, x_o: torch.Tensor) -> torch.Tensor:
        theta = self.transform(unconstrained)
        return self.net.log_prob(theta, x_o.expand(len(theta), -1)) + self.prior.log_prob(theta)


def simulate(n: int) -> Tuple[torch.Tensor, torch.Tensor]:
    theta = torch.rand(n, 2) * 4 - 2
    return theta, torch.cat([theta, theta.pow(2)], dim=1) + 0.1 * torch.randn(n, 4)


def main() -> None:
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    inference = PosteriorInference(device=device)
    net = inference.append_simulations(*simulate(64)).train()
    potential = inference.build_posterior(net)
    x_o = torch.zeros(1, 4, device=device)
    print(potential(torch.randn(5, 2, device=device), x_o).tolist())


if __name__ == "__main__":
    main()
