# source: sbi-dev/sbi#251
# mechanism: a standardizing layer holds mean and standard deviation of the training data as ordinary attributes
# expect: raises
import math
from typing import Optional

import torch
from torch import nn


class Standardize(nn.Module):
    """Shifts and scales inputs to zero mean and unit variance."""

    def __init__(self, mean: torch.Tensor, std: torch.Tensor):
        super().__init__()
        self.mean, self.std = mean, std  # ROOT

    def forward(self, tensor: torch.Tensor) -> torch.Tensor:
        return (tensor - self.mean) / self.std  # RAISE


def standardizing_net(batch: torch.Tensor, min_std: float = 1e-7) -> Standardize:
    return Standardize(batch.mean(0), batch.std(0).clamp(min=min_std))


class MDN(nn.Module):
    def __init__(self, features: int, context: int, components: int, embedding: nn.Module):
        super().__init__()
        self.features, self.components = features, components
        self.embedding = embedding
        self.hidden = nn.Sequential(nn.Linear(context, 24), nn.Tanh())
        self.logits = nn.Linear(24, components)
        self.means = nn.Linear(24, components * features)
        self.log_stds = nn.Linear(24, components * features)
        self.register_buffer("log_norm", torch.tensor(0.5 * features * math.log(2 * math.pi)))

    def log_prob(self, theta: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        h = self.hidden(self.embedding(x))
        shape = (-1, self.components, self.features)
        means, log_stds = self.means(h).view(shape), self.log_stds(h).view(shape)
        z = (theta.unsqueeze(1) - means) * torch.exp(-log_stds)
        comp = -0.5 * z.pow(2).sum(-1) - log_stds.sum(-1) - self.log_norm
        return torch.logsumexp(torch.log_softmax(self.logits(h), dim=1) + comp, dim=1)


def build_mdn(batch_theta: torch.Tensor, batch_x: torch.Tensor, z_score_x: bool = True, components: int = 3) -> MDN:
    embedding: nn.Module = nn.Linear(batch_x.shape[1], 8)
    if z_score_x:
        embedding = nn.Sequential(standardizing_net(batch_x), embedding)
    return MDN(batch_theta.shape[1], 8, components, embedding)


class NeuralPosterior:
    def __init__(self, device: str, max_epochs: int = 3, patience: int = 2):
        self._device = torch.device(device)
        self._max_epochs, self._patience = max_epochs, patience
        self._net: Optional[MDN] = None

    def _split(self, theta: torch.Tensor, x: torch.Tensor, fraction: float = 0.2):
        perm = torch.randperm(len(x))
        cut = int(len(x) * fraction)
        to = lambda t: t.to(self._device)
        return [(to(theta[i]), to(x[i])) for i in (perm[cut:], perm[:cut])]

    def train(self, theta: torch.Tensor, x: torch.Tensor) -> MDN:
        if self._net is None:
            self._net = build_mdn(theta, x)
            self._net.to(self._device)
        (theta_t, x_t), (theta_v, x_v) = self._split(theta, x)
        optimizer = torch.optim.Adam(self._net.parameters(), lr=5e-4)
        best, since = math.inf, 0
        for _ in range(self._max_epochs):
            for idx in torch.randperm(len(x_t), device=self._device).split(16):
                optimizer.zero_grad()
                (-self._net.log_prob(theta_t[idx], x_t[idx]).mean()).backward()
                optimizer.step()
            with torch.no_grad():
                val = -self._net.log_prob(theta_v, x_v).mean().item()
            best, since = (val, 0) if val < best else (best, since + 1)
            if since >= self._patience:
                break
        return self._net


def main() -> None:
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    theta = torch.randn(80, 2)
    x = torch.cat([theta * 3 + 10, theta.sin()], dim=1)
    net = NeuralPosterior(device).train(theta, x)
    with torch.no_grad():
        print(net.log_prob(theta[:3].to(device), x[:3].to(device)).tolist())


if __name__ == "__main__":
    main()
