# source: pyro-ppl/pyro#2761
# mechanism: the learnable transform is moved to the GPU, but the base distribution under it is made of host tensors
# expect: raises
from typing import List, Tuple

import torch
from torch import nn
from torch.distributions import Distribution, Independent, Normal, Transform, TransformedDistribution, constraints


class ConditionerNet(nn.Module):
    def __init__(self, in_dim: int, out_dim: int, hidden: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(in_dim, hidden), nn.ReLU(), nn.Linear(hidden, 2 * out_dim))

    def forward(self, x: torch.Tensor) -> Tuple[torch.Tensor, torch.Tensor]:
        mean, log_scale = self.layers(x).chunk(2, dim=-1)
        return mean, log_scale.clamp(-5.0, 3.0)


class AffineCoupling(Transform, nn.Module):
    domain = constraints.independent(constraints.real, 1)
    codomain = constraints.independent(constraints.real, 1)
    bijective = True

    def __init__(self, split: int, net: ConditionerNet):
        nn.Module.__init__(self)
        Transform.__init__(self, cache_size=0)
        self.split, self.net = split, net

    def __hash__(self) -> int:
        return nn.Module.__hash__(self)

    def _call(self, x: torch.Tensor) -> torch.Tensor:
        left, right = x[..., : self.split], x[..., self.split:]
        mean, log_scale = self.net(left)
        return torch.cat([left, right * log_scale.exp() + mean], dim=-1)

    def _inverse(self, y: torch.Tensor) -> torch.Tensor:
        left, right = y[..., : self.split], y[..., self.split:]
        mean, log_scale = self.net(left)
        return torch.cat([left, (right - mean) * (-log_scale).exp()], dim=-1)

    def log_abs_det_jacobian(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.net(x[..., : self.split])[1].sum(-1)


class Flip(Transform):
    domain = constraints.independent(constraints.real, 1)
    codomain = constraints.independent(constraints.real, 1)
    bijective = True

    def _call(self, x: torch.Tensor) -> torch.Tensor:
        return x.flip(-1)

    def _inverse(self, y: torch.Tensor) -> torch.Tensor:
        return y.flip(-1)

    def log_abs_det_jacobian(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.new_zeros(x.shape[:-1])


def affine_coupling(dim: int, hidden: int = 16) -> AffineCoupling:
    split = dim // 2
    return AffineCoupling(split, ConditionerNet(split, dim - split, hidden))


class DensityTrainer:
    def __init__(self, dist: Distribution, modules: List[nn.Module], lr: float = 5e-3):
        self.dist = dist
        params = [p for m in modules for p in m.parameters()]
        self.optimizer = torch.optim.Adam(params, lr=lr)

    def run(self, data: torch.Tensor, steps: int) -> float:
        loss = torch.zeros(())
        for _ in range(steps):
            self.optimizer.zero_grad()
            loss = -self.dist.log_prob(data).mean()  # RAISE
            loss.backward()
            self.optimizer.step()
        return loss.item()


def two_moons(n: int) -> torch.Tensor:
    angle = torch.rand(n) * torch.pi
    sign = (torch.arange(n) % 2) * 2.0 - 1.0
    points = torch.stack([angle.cos() + 0.5 * sign, sign * angle.sin()], dim=1)
    return points + 0.05 * torch.randn(n, 2)


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    dataset = two_moons(128).to(device)
    dataset = (dataset - dataset.mean(0)) / dataset.std(0)
    loc, scale = torch.zeros(2), torch.ones(2)  # ROOT
    base_dist = Independent(Normal(loc, scale), 1)  # ALSO
    couplings = [affine_coupling(2).to(device) for _ in range(2)]
    flow_dist = TransformedDistribution(base_dist, [couplings[0], Flip(), couplings[1]])
    trainer = DensityTrainer(flow_dist, couplings)
    print("nll", trainer.run(dataset, steps=4))


if __name__ == "__main__":
    main()
