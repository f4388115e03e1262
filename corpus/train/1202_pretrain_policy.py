# source: HumanCompatibleAI/imitation#870
# mechanism: when a distribution has no analytic entropy the loss falls back to a zero tensor that is made on the host
# expect: raises
from typing import NamedTuple, Optional, Tuple

import torch
from torch import nn
from torch.distributions import Normal


class PretrainConfig(NamedTuple):
    obs_dim: int = 6
    act_dim: int = 2
    use_sde: bool = True
    ent_weight: float = 1e-3
    l2_weight: float = 1e-4
    steps: int = 4


class StateDependentNoise(nn.Module):
    def __init__(self, latent_dim: int, act_dim: int):
        super().__init__()
        self.log_std = nn.Parameter(torch.full((latent_dim, act_dim), -1.0))

    def scale(self, latent: torch.Tensor) -> torch.Tensor:
        variance = latent.pow(2) @ self.log_std.exp().pow(2)
        return torch.sqrt(variance + 1e-6)


class GaussianPolicy(nn.Module):
    def __init__(self, cfg: PretrainConfig, hidden: int = 16):
        super().__init__()
        self.use_sde = cfg.use_sde
        self.body = nn.Sequential(nn.Linear(cfg.obs_dim, hidden), nn.Tanh())
        self.mean = nn.Linear(hidden, cfg.act_dim)
        self.noise = StateDependentNoise(hidden, cfg.act_dim)
        self.log_std = nn.Parameter(torch.zeros(cfg.act_dim))

    def evaluate(self, obs: torch.Tensor, acts: torch.Tensor) -> Tuple[torch.Tensor, Optional[torch.Tensor]]:
        latent = self.body(obs)
        if self.use_sde:
            dist = Normal(self.mean(latent), self.noise.scale(latent))
            squashed = dist.log_prob(acts).sum(-1)
            return squashed, None
        dist = Normal(self.mean(latent), self.log_std.exp())
        return dist.log_prob(acts).sum(-1), dist.entropy().sum(-1)


class CloningLoss:
    def __init__(self, ent_weight: float, l2_weight: float):
        self.ent_weight = ent_weight
        self.l2_weight = l2_weight

    def __call__(self, policy: GaussianPolicy, obs: torch.Tensor, acts: torch.Tensor) -> dict:
        log_prob, entropy = policy.evaluate(obs, acts)
        entropy = entropy.mean() if entropy is not None else torch.zeros(1)  # ROOT
        neglogp = -log_prob.mean()
        ent_loss = -self.ent_weight * entropy
        l2_loss = self.l2_weight * sum(torch.sum(w.square()) for w in policy.parameters())
        loss = neglogp + ent_loss + l2_loss  # RAISE
        return {"neglogp": neglogp, "ent_loss": ent_loss, "l2_loss": l2_loss, "loss": loss}


class DemonstrationSet:
    def __init__(self, cfg: PretrainConfig, size: int, device: torch.device):
        gen = torch.Generator().manual_seed(11)
        self.obs = torch.randn(size, cfg.obs_dim, generator=gen).to(device)
        self.acts = torch.tanh(self.obs[:, : cfg.act_dim] * 2.0)

    def sample(self, n: int) -> Tuple[torch.Tensor, torch.Tensor]:
        idx = torch.randint(0, len(self.obs), (n,), device=self.obs.device)
        return self.obs[idx], self.acts[idx]


def pretrain(cfg: PretrainConfig, device: torch.device) -> dict:
    policy = GaussianPolicy(cfg).to(device)
    demos = DemonstrationSet(cfg, 64, device)
    criterion = CloningLoss(cfg.ent_weight, cfg.l2_weight)
    optimizer = torch.optim.Adam(policy.parameters(), lr=3e-4)
    metrics: dict = {}
    for _ in range(cfg.steps):
        metrics = criterion(policy, *demos.sample(16))
        optimizer.zero_grad()
        metrics["loss"].sum().backward()
        optimizer.step()
    return {k: float(v.detach().sum()) for k, v in metrics.items()}


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    print(pretrain(PretrainConfig(), device))


if __name__ == "__main__":
    main()
