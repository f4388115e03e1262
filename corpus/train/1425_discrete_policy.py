# source: opendilab/DI-engine#169
# mechanism: noise is moved only if the device equals 'cuda', which a device with an index does not
# expect: raises
import copy

import torch
import torch.nn.functional as F
from torch import nn


class GumbelSoftmax(nn.Module):
    def sample_noise(self, shape, device, eps=1e-20):
        u = torch.rand(shape)  # ALSO
        if device == torch.device("cuda"):  # ROOT
            u = u.to(device)
        return -torch.log(-torch.log(u + eps) + eps)  # ALSO

    def forward(self, logits, temperature=1.0, hard=False):
        noise = self.sample_noise(logits.shape, logits.device)
        soft = F.softmax((logits + noise) / temperature, dim=-1)  # RAISE
        if not hard:
            return soft
        index = soft.argmax(-1, keepdim=True)
        one_hot = torch.zeros_like(soft).scatter_(-1, index, 1.0)
        return one_hot - soft.detach() + soft


class Actor(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs, 16), nn.ReLU(), nn.Linear(16, actions))
        self.gumbel = GumbelSoftmax()

    def forward(self, obs, explore=True):
        logits = self.net(obs)
        if explore:
            return self.gumbel(logits, hard=True)
        return F.one_hot(logits.argmax(-1), logits.shape[-1]).float()


class Critic(nn.Module):
    def __init__(self, obs, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs + actions, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, obs, action):
        return self.net(torch.cat([obs, action], dim=-1)).squeeze(-1)


class MADDPGAgent:
    def __init__(self, obs, actions, cuda=True, gamma=0.95):
        self.device = torch.device("cuda:0" if cuda and torch.cuda.is_available() else "cpu")
        self.actor = Actor(obs, actions).to(self.device)
        self.critic = Critic(obs, actions).to(self.device)
        self.target_critic = copy.deepcopy(self.critic)
        self.actor_opt = torch.optim.Adam(self.actor.parameters(), lr=1e-3)
        self.critic_opt = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.gamma = gamma

    def learn(self, batch):
        obs, action, reward, nxt = (b.to(self.device) for b in batch)
        with torch.no_grad():
            next_action = self.actor(nxt, explore=False)
            target = reward + self.gamma * self.target_critic(nxt, next_action)
        critic_loss = F.mse_loss(self.critic(obs, action), target)
        self.critic_opt.zero_grad()
        critic_loss.backward()
        self.critic_opt.step()
        actor_loss = -self.critic(obs, self.actor(obs)).mean()
        self.actor_opt.zero_grad()
        actor_loss.backward()
        self.actor_opt.step()
        return critic_loss.item(), actor_loss.item()


def fake_batch(obs, actions, size=8):
    action = F.one_hot(torch.randint(0, actions, (size,)), actions).float()
    return torch.randn(size, obs), action, torch.randn(size), torch.randn(size, obs)


if __name__ == "__main__":
    agent = MADDPGAgent(5, 3)
    for _ in range(2):
        print(agent.learn(fake_batch(5, 3)))
