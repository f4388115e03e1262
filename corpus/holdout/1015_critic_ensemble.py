# source: marlbenchmark/off-policy#12
# mechanism: the output heads of the critic are kept in a plain list, so moving the module to the GPU does not move them
# expect: raises
from argparse import Namespace

import torch
from torch import nn


def init_layer(layer, gain=1.0):
    nn.init.orthogonal_(layer.weight, gain=gain)
    nn.init.zeros_(layer.bias)
    return layer


class MLPBase(nn.Module):
    def __init__(self, args, in_dim):
        super().__init__()
        self.norm = nn.LayerNorm(in_dim)
        self.fc = nn.Sequential(init_layer(nn.Linear(in_dim, args.hidden)), nn.ReLU())

    def forward(self, x):
        return self.fc(self.norm(x))


class Critic(nn.Module):
    def __init__(self, args, central_obs_dim, central_act_dim, device, num_outputs=2):
        super().__init__()
        self.device = device
        self.mlp = MLPBase(args, central_obs_dim + central_act_dim)
        self.q_outs = [init_layer(nn.Linear(args.hidden, 1)) for _ in range(num_outputs)]  # ROOT
        self.to(device)

    def forward(self, obs, act):
        hidden = self.mlp(torch.cat([obs, act], dim=-1).to(self.device))
        return [head(hidden) for head in self.q_outs]  # RAISE


class Actor(nn.Module):
    def __init__(self, args, obs_dim, act_dim, device):
        super().__init__()
        self.base = MLPBase(args, obs_dim)
        self.out = init_layer(nn.Linear(args.hidden, act_dim), gain=0.01)
        self.to(device)

    def forward(self, obs):
        return torch.tanh(self.out(self.base(obs)))


class AgentPolicy:
    def __init__(self, args, obs_dim, act_dim, agents):
        self.device = torch.device(args.device)
        self.actor = Actor(args, obs_dim, act_dim, self.device)
        self.critic = Critic(args, agents * obs_dim, agents * act_dim, self.device)

    def joint(self, obs):
        acts = torch.stack([self.actor(o) for o in obs.unbind(1)], dim=1)
        return obs.flatten(1), acts.flatten(1)

    def critic_loss(self, obs, reward):
        values = self.critic(*self.joint(obs))
        return sum((v.squeeze(-1) - reward).pow(2).mean() for v in values)

    def actor_loss(self, obs):
        return -torch.min(*self.critic(*self.joint(obs))).mean()


class Runner:
    def __init__(self, args):
        self.args = args
        self.policy = AgentPolicy(args, obs_dim=5, act_dim=2, agents=3)
        self.actor_opt = torch.optim.Adam(self.policy.actor.parameters(), lr=args.lr)

    def update(self):
        obs = torch.randn(self.args.batch, 3, 5, device=self.policy.device)
        reward = obs.sum((1, 2))
        critic_loss = self.policy.critic_loss(obs, reward)
        loss = critic_loss + self.policy.actor_loss(obs)
        self.actor_opt.zero_grad()
        loss.backward()
        self.actor_opt.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    runner = Runner(Namespace(hidden=16, lr=1e-3, batch=8, device="cuda"))
    print([round(runner.update(), 4) for _ in range(3)])
