# source: bayesiains/nflows#15
# mechanism: a chain of transforms sums the log determinants in a host accumulator that is made anew in every pass
# expect: raises
import math
from typing import Callable, List, Optional, Tuple

import torch
from torch import nn


class Transform(nn.Module):
    def inverse(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        raise NotImplementedError


class AffineCoupling(Transform):
    def __init__(self, features: int, mask: torch.Tensor, hidden: int = 16):
        super().__init__()
        self.register_buffer("identity", torch.nonzero(mask <= 0).flatten())
        self.register_buffer("transformed", torch.nonzero(mask > 0).flatten())
        n_out = 2 * len(self.transformed)
        self.net = nn.Sequential(nn.Linear(len(self.identity), hidden), nn.ReLU(), nn.Linear(hidden, n_out))

    def _params(self, fixed: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        shift, raw = self.net(fixed).chunk(2, dim=-1)
        return shift, torch.sigmoid(raw + 2.0) + 1e-3

    def forward(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        shift, scale = self._params(inputs[:, self.identity])
        outputs = inputs.index_copy(1, self.transformed, inputs[:, self.transformed] * scale + shift)
        return outputs, scale.log().sum(-1)

    def inverse(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        shift, scale = self._params(inputs[:, self.identity])
        outputs = inputs.index_copy(1, self.transformed, (inputs[:, self.transformed] - shift) / scale)
        return outputs, -scale.log().sum(-1)


class Permutation(Transform):
    def __init__(self, permutation: torch.Tensor):
        super().__init__()
        self.register_buffer("perm", permutation)

    def forward(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return inputs[:, self.perm], inputs.new_zeros(inputs.shape[0])

    def inverse(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return inputs[:, torch.argsort(self.perm)], inputs.new_zeros(inputs.shape[0])


class CompositeTransform(Transform):
    def __init__(self, transforms: List[Transform]):
        super().__init__()
        self._transforms = nn.ModuleList(transforms)

    @staticmethod
    def _cascade(inputs: torch.Tensor, funcs: List[Callable]) -> Tuple[torch.Tensor, torch.Tensor]:
        outputs = inputs
        total_logabsdet = torch.zeros(inputs.shape[0])  # ROOT
        for func in funcs:
            outputs, logabsdet = func(outputs)
            total_logabsdet += logabsdet  # RAISE
        return outputs, total_logabsdet

    def forward(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return self._cascade(inputs, list(self._transforms))

    def inverse(self, inputs: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        return self._cascade(inputs, [t.inverse for t in reversed(self._transforms)])


class Flow(nn.Module):
    def __init__(self, transform: Transform, features: int):
        super().__init__()
        self.transform, self.features = transform, features
        self.register_buffer("log_z", torch.tensor(0.5 * features * math.log(2 * math.pi)))

    def log_prob(self, inputs: torch.Tensor) -> torch.Tensor:
        noise, logabsdet = self.transform(inputs)
        return -0.5 * noise.pow(2).sum(-1) - self.log_z + logabsdet

    @torch.no_grad()
    def sample(self, n: int, generator: Optional[torch.Generator] = None) -> torch.Tensor:
        noise = torch.randn(n, self.features, generator=generator).to(self.log_z.device)
        return self.transform.inverse(noise)[0]


def build_flow(features: int, layers: int) -> Flow:
    transforms: List[Transform] = []
    for i in range(layers):
        mask = torch.arange(features) % 2 * 2 - 1
        transforms += [AffineCoupling(features, mask), Permutation(torch.randperm(features))]
    return Flow(CompositeTransform(transforms), features)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    flow = build_flow(4, 3).to(device)
    optimizer = torch.optim.Adam(flow.parameters(), lr=1e-3)
    data = torch.randn(64, 4) * torch.tensor([1.0, 2.0, 0.5, 1.5])
    for batch in data.split(16):
        loss = -flow.log_prob(batch.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("nll", loss.item(), flow.sample(3).shape)


if __name__ == "__main__":
    main()
