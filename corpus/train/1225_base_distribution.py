# source: bayesiains/nflows PR#20
# mechanism: a base distribution draws with the context's device, and where there is no context on the default device
# expect: raises
import math
from typing import Optional, Sequence

import torch
from torch import nn


class Distribution(nn.Module):
    def sample(self, num_samples: int, context: Optional[torch.Tensor] = None, batch_size: int = 0) -> torch.Tensor:
        if not batch_size:
            return self._sample(num_samples, context)
        sizes = [batch_size] * (num_samples // batch_size)
        if num_samples % batch_size:
            sizes.append(num_samples % batch_size)
        return torch.cat([self._sample(n, context) for n in sizes], dim=0)

    def _sample(self, num_samples: int, context: Optional[torch.Tensor]) -> torch.Tensor:
        raise NotImplementedError


class StandardNormal(Distribution):
    def __init__(self, shape: Sequence[int]):
        super().__init__()
        self._shape = torch.Size(shape)
        log_z = 0.5 * self._shape.numel() * math.log(2 * math.pi)
        self.register_buffer("_log_z", torch.tensor(log_z), persistent=False)

    def log_prob(self, inputs: torch.Tensor) -> torch.Tensor:
        return -0.5 * inputs.pow(2).flatten(1).sum(1) - self._log_z

    def _sample(self, num_samples: int, context: Optional[torch.Tensor]) -> torch.Tensor:
        if context is None:
            return torch.randn(num_samples, *self._shape)  # ROOT
        rows = context.shape[0] * num_samples
        return torch.randn(rows, *self._shape, device=context.device)


class MaskedAffine(nn.Module):
    """A triangular affine map, conditioned on a context where there is one."""

    def __init__(self, features: int, context_features: int):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(features, features) * 0.1)
        self.log_diag = nn.Parameter(torch.zeros(features))
        self.register_buffer("mask", torch.tril(torch.ones(features, features), -1))
        self.context = nn.Linear(context_features, features)

    def _matrix(self) -> torch.Tensor:
        return self.weight * self.mask + torch.diag(self.log_diag.exp())

    def _shift(self, n: int, context: Optional[torch.Tensor]) -> torch.Tensor:
        if context is None:
            return self.log_diag.new_zeros(n, self.log_diag.shape[0])
        return self.context(context)

    def forward(self, inputs: torch.Tensor, context: Optional[torch.Tensor] = None):
        centred = inputs - self._shift(len(inputs), context)
        noise = torch.linalg.solve_triangular(self._matrix(), centred.T, upper=False).T
        return noise, -self.log_diag.sum().expand(len(inputs))

    def inverse(self, noise: torch.Tensor, context: Optional[torch.Tensor] = None) -> torch.Tensor:
        return noise @ self._matrix().T + self._shift(len(noise), context)  # RAISE


class Flow(Distribution):
    def __init__(self, transform: MaskedAffine, base: StandardNormal):
        super().__init__()
        self._transform, self._distribution = transform, base

    def log_prob(self, inputs: torch.Tensor, context: Optional[torch.Tensor] = None) -> torch.Tensor:
        noise, logabsdet = self._transform(inputs, context)
        return self._distribution.log_prob(noise) + logabsdet

    def _sample(self, num_samples: int, context: Optional[torch.Tensor]) -> torch.Tensor:
        noise = self._distribution.sample(num_samples, context)  # ALSO
        if context is not None:
            context = context.repeat_interleave(num_samples, dim=0)
        return self._transform.inverse(noise, context)


def train(flow: Flow, data: torch.Tensor, context: torch.Tensor, epochs: int) -> None:
    optimizer = torch.optim.Adam(flow.parameters(), lr=5e-3)
    for epoch in range(epochs):
        for x, c in zip(data.split(20), context.split(20)):
            loss = -flow.log_prob(x, c if epoch % 2 else None).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    flow = Flow(MaskedAffine(3, 2), StandardNormal((3,))).to(device)
    context = torch.randn(60, 2, device=device)
    data = torch.randn(60, 3, device=device) + context.sum(1, keepdim=True)
    train(flow, data, context, epochs=2)
    with torch.no_grad():
        print("conditional", flow.sample(4, context[:2]).shape)
        print("marginal", flow.sample(10, batch_size=4).mean(0).tolist())


if __name__ == "__main__":
    main()
