# source: thu-ml/tianshou#727
# mechanism: a network remembers the device it was built for and sends observations there, also after the policy has been moved elsewhere
# expect: raises
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import torch
from torch import nn


class Batch(dict):
    def __getattr__(self, key: str) -> Any:
        return self[key]


class MLP(nn.Module):
    def __init__(self, input_dim: int, output_dim: int, hidden_sizes: Sequence[int]):
        super().__init__()
        sizes = [input_dim, *hidden_sizes]
        layers: List[nn.Module] = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        self.model = nn.Sequential(*layers, nn.Linear(sizes[-1], output_dim))

    def forward(self, obs: torch.Tensor) -> torch.Tensor:
        return self.model(obs.flatten(1))  # RAISE


class Net(nn.Module):
    def __init__(self, state_dim: int, action_dim: int, hidden_sizes: Sequence[int], device: Union[str, int] = "cpu"):
        super().__init__()
        self.device = device
        self.preprocess = MLP(state_dim, hidden_sizes[-1], hidden_sizes[:-1])
        self.head = nn.Linear(hidden_sizes[-1], action_dim)

    def forward(self, obs: Any, state: Optional[Any] = None) -> Tuple[torch.Tensor, Any]:
        obs = torch.as_tensor(obs, dtype=torch.float32, device=self.device)  # ROOT
        return self.head(torch.relu(self.preprocess(obs))), state


class DQNPolicy(nn.Module):
    def __init__(self, model: Net, lr: float, gamma: float = 0.99, target_freq: int = 2):
        super().__init__()
        self.model = model
        self.model_old = Net(4, 2, [16, 16], device=model.device)
        self.model_old.load_state_dict(model.state_dict())
        self.optim = torch.optim.SGD(self.model.parameters(), lr=lr)
        self.gamma, self.freq, self.count = gamma, target_freq, 0

    def forward(self, batch: Batch) -> Batch:
        logits, state = self.model(batch.obs)
        return Batch(logits=logits, act=logits.argmax(dim=1), state=state)

    def learn(self, batch: Batch) -> float:
        if self.count % self.freq == 0:
            self.model_old.load_state_dict(self.model.state_dict())
        self.count += 1
        q, _ = self.model(batch.obs)
        with torch.no_grad():
            target = self.model_old(batch.obs_next)[0].amax(1)
        reward = torch.as_tensor(batch.rew, dtype=q.dtype, device=q.device)
        action = torch.as_tensor(batch.act, device=q.device)
        loss = (q.gather(1, action[:, None])[:, 0] - reward - self.gamma * target).pow(2).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return loss.item()


class CartEnv:
    """A toy vector environment that speaks plain lists."""

    def __init__(self, n: int):
        self.n, self.gen = n, torch.Generator().manual_seed(0)

    def reset(self) -> List[List[float]]:
        return torch.randn(self.n, 4, generator=self.gen).tolist()

    def step(self, act: List[int]) -> Tuple[List[List[float]], List[float]]:
        return self.reset(), [1.0 - 0.5 * a for a in act]


def collect(policy: DQNPolicy, env: CartEnv) -> Batch:
    obs = env.reset()
    with torch.no_grad():
        act = policy(Batch(obs=obs)).act.tolist()
    obs_next, rew = env.step(act)
    return Batch(obs=obs, act=act, rew=rew, obs_next=obs_next)


def main() -> None:
    policy = DQNPolicy(Net(4, 2, [16, 16]), lr=0.01)
    env = CartEnv(6)
    results: Dict[str, float] = {"warmup": policy.learn(collect(policy, env))}
    device = "cuda:0" if torch.cuda.is_available() else "cpu"
    policy.to(device)  # ALSO
    for _ in range(3):
        results["train"] = policy.learn(collect(policy, env))
    print(results)


if __name__ == "__main__":
    main()
