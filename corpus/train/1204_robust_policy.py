# source: vwxyzjn/cleanrl#396
# mechanism: during the update a perturbation of the action mean is drawn from a host distribution and added to the network's output
# expect: raises
import argparse

import torch
from torch import nn
from torch.distributions.normal import Normal


def parse_args(argv=None) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-envs", type=int, default=4)
    parser.add_argument("--num-steps", type=int, default=6)
    parser.add_argument("--rpo-alpha", type=float, default=0.5)
    parser.add_argument("--clip-coef", type=float, default=0.2)
    parser.add_argument("--cuda", type=lambda x: x != "0", default=True)
    return parser.parse_args(argv or [])


class PointEnvs:
    """A vector of one-step point-mass tasks."""

    def __init__(self, num_envs: int, obs_dim: int, device: torch.device):
        self.num_envs, self.obs_dim, self.device = num_envs, obs_dim, device

    def reset(self) -> torch.Tensor:
        return torch.randn(self.num_envs, self.obs_dim, device=self.device)

    def step(self, action: torch.Tensor):
        reward = -(action.clamp(-1, 1) ** 2).sum(1)
        return self.reset(), reward


def layer_init(layer: nn.Linear, std: float = 2 ** 0.5) -> nn.Linear:
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim: int, act_dim: int, rpo_alpha: float):
        super().__init__()
        self.rpo_alpha = rpo_alpha
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), 1.0))
        self.actor_mean = nn.Sequential(layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, act_dim), 0.01))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act_dim))

    def get_value(self, x: torch.Tensor) -> torch.Tensor:
        return self.critic(x)

    def get_action_and_value(self, x: torch.Tensor, action: torch.Tensor = None):
        action_mean = self.actor_mean(x)
        action_std = torch.exp(self.actor_logstd.expand_as(action_mean))
        probs = Normal(action_mean, action_std)
        if action is None:
            action = probs.sample()
        else:
            z = torch.empty(action_mean.shape).uniform_(-self.rpo_alpha, self.rpo_alpha)  # ROOT
            action_mean = action_mean + z  # RAISE # ALSO
            probs = Normal(action_mean, action_std)
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


def collect(agent: Agent, envs: PointEnvs, steps: int) -> dict:
    keep = {"obs": [], "actions": [], "logprobs": [], "rewards": [], "values": []}
    obs = envs.reset()
    with torch.no_grad():
        for _ in range(steps):
            action, logprob, _, value = agent.get_action_and_value(obs)
            next_obs, reward = envs.step(action)
            for key, item in zip(keep, (obs, action, logprob, reward, value.flatten())):
                keep[key].append(item)
            obs = next_obs
    return {k: torch.cat(v) for k, v in keep.items()}


def update(agent: Agent, optimizer: torch.optim.Optimizer, batch: dict, clip: float) -> float:
    advantages = batch["rewards"] - batch["values"]
    _, newlogprob, entropy, newvalue = agent.get_action_and_value(batch["obs"], batch["actions"])
    ratio = (newlogprob - batch["logprobs"]).exp()
    pg_loss = torch.max(-advantages * ratio, -advantages * ratio.clamp(1 - clip, 1 + clip)).mean()
    v_loss = 0.5 * (newvalue.flatten() - batch["rewards"]).pow(2).mean()
    loss = pg_loss - 0.01 * entropy.mean() + 0.5 * v_loss
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    optimizer.step()
    return loss.item()


if __name__ == "__main__":
    args = parse_args()
    device = torch.device("cuda:0" if torch.cuda.is_available() and args.cuda else "cpu")
    envs = PointEnvs(args.num_envs, 5, device)
    agent = Agent(5, 2, args.rpo_alpha).to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-4, eps=1e-5)
    for _ in range(2):
        print(update(agent, optimizer, collect(agent, envs, args.num_steps), args.clip_coef))
