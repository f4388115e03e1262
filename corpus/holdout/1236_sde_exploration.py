# source: DLR-RM/stable-baselines3#1957
# mechanism: an exploration matrix is sampled when a policy is built and is used as it is after the policy has been moved, where noise is not reset
# expect: raises
from typing import Dict, Tuple

import torch
from torch import nn
from torch.distributions import Normal


class StateDependentNoiseDistribution:
    def __init__(self, action_dim: int, epsilon: float = 1e-6):
        self.action_dim, self.epsilon = action_dim, epsilon

    def build(self, latent_dim: int, log_std_init: float) -> Tuple[nn.Module, nn.Parameter]:
        mean_actions = nn.Linear(latent_dim, self.action_dim)
        log_std = nn.Parameter(torch.ones(latent_dim, self.action_dim) * log_std_init)
        self.sample_weights(log_std)
        return mean_actions, log_std

    def sample_weights(self, log_std: torch.Tensor, batch_size: int = 1) -> None:
        std = log_std.exp()
        weights = Normal(torch.zeros_like(std), std)
        self.exploration_mat = weights.rsample()
        self.exploration_matrices = weights.rsample((batch_size,))

    def proba_distribution(self, mean: torch.Tensor, log_std: torch.Tensor, latent: torch.Tensor):
        self._latent = latent.detach()
        variance = torch.mm(self._latent ** 2, log_std.exp() ** 2)
        self.distribution = Normal(mean, torch.sqrt(variance + self.epsilon))
        return self

    def get_noise(self) -> torch.Tensor:
        if len(self._latent) == 1 or len(self._latent) != len(self.exploration_matrices):
            return torch.mm(self._latent, self.exploration_mat)  # RAISE
        return torch.bmm(self._latent.unsqueeze(1), self.exploration_matrices).squeeze(1)

    def get_actions(self, deterministic: bool) -> torch.Tensor:
        mean = self.distribution.mean
        return mean if deterministic else mean + self.get_noise()

    def log_prob(self, actions: torch.Tensor) -> torch.Tensor:
        return self.distribution.log_prob(actions).sum(1)


class DictPolicy(nn.Module):
    def __init__(self, sizes: Dict[str, int], action_dim: int, hidden: int = 16, log_std_init: float = -2.0):
        super().__init__()
        self.extractors = nn.ModuleDict({k: nn.Linear(n, 8) for k, n in sizes.items()})
        self.body = nn.Sequential(nn.Linear(8 * len(sizes), hidden), nn.Tanh())
        self.value_net = nn.Linear(hidden, 1)
        self.action_dist = StateDependentNoiseDistribution(action_dim)
        self.action_net, self.log_std = self.action_dist.build(hidden, log_std_init)

    def reset_noise(self, n_envs: int = 1) -> None:
        self.action_dist.sample_weights(self.log_std, batch_size=n_envs)

    def _latent(self, obs: Dict[str, torch.Tensor]) -> torch.Tensor:
        return self.body(torch.cat([net(obs[k]) for k, net in self.extractors.items()], dim=1))

    def _dist(self, latent: torch.Tensor) -> StateDependentNoiseDistribution:
        return self.action_dist.proba_distribution(self.action_net(latent), self.log_std, latent)

    @torch.no_grad()
    def predict(self, obs: Dict[str, torch.Tensor], deterministic: bool = False) -> torch.Tensor:
        return self._dist(self._latent(obs)).get_actions(deterministic)

    def evaluate_actions(self, obs: Dict[str, torch.Tensor], actions: torch.Tensor):
        latent = self._latent(obs)
        return self.value_net(latent).flatten(), self._dist(latent).log_prob(actions)


class PPO:
    def __init__(self, sizes: Dict[str, int], action_dim: int, device: torch.device):
        self.sizes, self.device = sizes, device
        self.policy = DictPolicy(sizes, action_dim)
        self.policy.to(device)  # ROOT
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=3e-4)

    def observe(self, n: int) -> Dict[str, torch.Tensor]:
        return {k: torch.randn(n, size).to(self.device) for k, size in self.sizes.items()}

    def enjoy(self, steps: int) -> float:
        total = 0.0
        for _ in range(steps):
            action = self.policy.predict(self.observe(1))  # ALSO
            total -= action.pow(2).sum().item()
        return total

    def learn(self, n_envs: int, updates: int) -> float:
        loss = torch.zeros(())
        for _ in range(updates):
            self.policy.reset_noise(n_envs)
            obs = self.observe(n_envs)
            actions = self.policy.predict(obs)
            reward = -actions.pow(2).sum(1)
            values, log_prob = self.policy.evaluate_actions(obs, actions)
            loss = (values - reward).pow(2).mean() - (log_prob * (reward - values).detach()).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    agent = PPO({"joints": 6, "goal": 3}, 2, device)
    print("before", agent.enjoy(3))
    print("loss", agent.learn(4, 2))


if __name__ == "__main__":
    main()
