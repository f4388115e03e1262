# source: HumanCompatibleAI/imitation#843
# mechanism: a training loop moves the observations of demonstrations to the policy's device but turns the actions into tensors on the CPU
# expect: raises
from dataclasses import dataclass
from typing import Dict, Iterator, List, Union

import torch
from torch import nn
from torch.distributions import Categorical

Data = Union[List[float], torch.Tensor]


def safe_to_tensor(array: Data, **kwargs) -> torch.Tensor:
    if isinstance(array, torch.Tensor):
        return array.to(**kwargs)
    return torch.as_tensor(array, **kwargs)


class Policy(nn.Module):
    def __init__(self, obs_dim: int, actions: int):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(obs_dim, 16), nn.Tanh())
        self.action_net = nn.Linear(16, actions)
        self.value_net = nn.Linear(16, 1)

    @property
    def device(self):
        return self.action_net.weight.device

    def evaluate_actions(self, obs, acts):
        latent = self.features(obs)
        dist = Categorical(logits=self.action_net(latent))
        log_prob = dist.log_prob(acts)  # RAISE # ALSO
        return self.value_net(latent).flatten(), log_prob, dist.entropy()


@dataclass(frozen=True)
class BCTrainingMetrics:
    neglogp: torch.Tensor
    entropy: torch.Tensor
    l2_norm: torch.Tensor
    loss: torch.Tensor


@dataclass(frozen=True)
class BehaviorCloningLossCalculator:
    ent_weight: float
    l2_weight: float

    def __call__(self, policy, obs, acts) -> BCTrainingMetrics:
        _, log_prob, entropy = policy.evaluate_actions(obs, acts)  # ALSO
        l2 = sum(torch.sum(torch.square(w)) for w in policy.parameters()) / 2
        neglogp = -log_prob.mean()
        loss = neglogp - self.ent_weight * entropy.mean() + self.l2_weight * l2
        return BCTrainingMetrics(neglogp, entropy.mean(), l2, loss)


class DemonstrationLoader:
    def __init__(self, n: int, batch_size: int):
        gen = torch.Generator().manual_seed(6)
        self.obs = torch.randn(n, 4, generator=gen).tolist()
        self.acts = [int(row[0] > 0) for row in self.obs]
        self.batch_size = batch_size

    def __iter__(self) -> Iterator[Dict[str, list]]:
        for start in range(0, len(self.obs), self.batch_size):
            window = slice(start, start + self.batch_size)
            yield {"obs": self.obs[window], "acts": self.acts[window]}


class BC:
    def __init__(self, policy: Policy, demonstrations, device: str, lr: float = 1e-2):
        self.policy = policy.to(device)
        self.demonstrations = demonstrations
        self.loss_calculator = BehaviorCloningLossCalculator(1e-3, 1e-5)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)

    def train(self, n_epochs: int):
        metrics = None
        for _ in range(n_epochs):
            for batch in self.demonstrations:
                obs = safe_to_tensor(batch["obs"], device=self.policy.device).detach()
                acts = safe_to_tensor(batch["acts"])  # ROOT
                metrics = self.loss_calculator(self.policy, obs, acts)  # ALSO
                self.optimizer.zero_grad()
                metrics.loss.backward()
                self.optimizer.step()
        return metrics


def main():
    torch.manual_seed(0)
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    trainer = BC(Policy(4, 2), DemonstrationLoader(32, 8), device)
    metrics = trainer.train(n_epochs=2)
    print("neglogp %.3f entropy %.3f" % (metrics.neglogp.item(), metrics.entropy.item()))


if __name__ == "__main__":
    main()
