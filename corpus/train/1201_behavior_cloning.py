# source: HumanCompatibleAI/imitation#820
# mechanism: of the two fields of a demonstration batch only the observations are moved to the policy's device, the actions become a host tensor
# expect: raises
import dataclasses
from typing import Dict, Iterator, Optional

import torch
from torch import nn
from torch.distributions import Categorical
from torch.utils.data import DataLoader, Dataset


def safe_to_tensor(array, device: Optional[torch.device] = None) -> torch.Tensor:
    tensor = torch.as_tensor(array)
    return tensor if device is None else tensor.to(device)


class Transitions(Dataset):
    def __init__(self, n: int, obs_dim: int, n_actions: int):
        gen = torch.Generator().manual_seed(3)
        self.obs = torch.randn(n, obs_dim, generator=gen).tolist()
        self.acts = torch.randint(0, n_actions, (n,), generator=gen).tolist()

    def __len__(self) -> int:
        return len(self.obs)

    def __getitem__(self, i: int) -> Dict[str, object]:
        return {"obs": self.obs[i], "acts": self.acts[i]}


def transitions_collate(samples) -> Dict[str, list]:
    return {key: [s[key] for s in samples] for key in samples[0]}


class ActorCriticPolicy(nn.Module):
    def __init__(self, obs_dim: int, n_actions: int, hidden: int = 32):
        super().__init__()
        self.extractor = nn.Sequential(nn.Linear(obs_dim, hidden), nn.Tanh())
        self.action_net = nn.Linear(hidden, n_actions)
        self.value_net = nn.Linear(hidden, 1)

    @property
    def device(self) -> torch.device:
        return self.action_net.weight.device

    def evaluate_actions(self, obs: torch.Tensor, actions: torch.Tensor):
        latent = self.extractor(obs)
        distribution = Categorical(logits=self.action_net(latent))
        log_prob = distribution.log_prob(actions)  # RAISE
        return self.value_net(latent), log_prob, distribution.entropy()


@dataclasses.dataclass(frozen=True)
class BehaviorCloningLoss:
    ent_weight: float = 1e-3
    l2_weight: float = 1e-5

    def __call__(self, policy: ActorCriticPolicy, obs, acts) -> torch.Tensor:
        _, log_prob, entropy = policy.evaluate_actions(obs, acts)
        l2 = sum(p.pow(2).sum() for p in policy.parameters())
        return -log_prob.mean() - self.ent_weight * entropy.mean() + self.l2_weight * l2


class BC:
    def __init__(self, policy: ActorCriticPolicy, demos: Dataset, batch_size: int, device: torch.device):
        self.policy = policy.to(device)
        self.loader = DataLoader(demos, batch_size=batch_size, collate_fn=transitions_collate)
        self.loss_calculator = BehaviorCloningLoss()
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)

    def _batches(self, n_epochs: int) -> Iterator[Dict[str, list]]:
        for _ in range(n_epochs):
            yield from self.loader

    def train(self, n_epochs: int) -> float:
        loss = torch.zeros(())
        for batch in self._batches(n_epochs):
            obs = safe_to_tensor(batch["obs"], device=self.policy.device)
            acts = safe_to_tensor(batch["acts"])  # ROOT
            loss = self.loss_calculator(self.policy, obs, acts)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    trainer = BC(ActorCriticPolicy(4, 3), Transitions(48, 4, 3), batch_size=16, device=device)
    print("loss", trainer.train(n_epochs=2))


if __name__ == "__main__":
    main()
