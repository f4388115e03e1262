# source: DLR-RM/stable-baselines3#1561
# mechanism: a replay buffer restored from disk keeps the device name it was saved with and delivers samples there, although the agent now runs elsewhere
# expect: raises
import io
import pickle
import random

import torch
from torch import nn


class ReplayBuffer:
    def __init__(self, size, obs_dim, act_dim, device):
        self.size = size
        self.device = device
        self.obs = torch.zeros(size, obs_dim)
        self.next_obs = torch.zeros(size, obs_dim)
        self.actions = torch.zeros(size, act_dim)
        self.rewards = torch.zeros(size, 1)
        self.pos = 0

    def add(self, obs, next_obs, action, reward):
        slot = self.pos % self.size
        self.obs[slot], self.next_obs[slot], self.actions[slot], self.rewards[slot] = obs, next_obs, action, reward
        self.pos += 1

    def to_torch(self, array):
        return array.to(self.device)

    def sample(self, batch):
        rows = torch.randint(min(self.pos, self.size), (batch,))
        return tuple(self.to_torch(a[rows]) for a in (self.obs, self.actions, self.rewards, self.next_obs))


class ContinuousCritic(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.q = nn.Sequential(nn.Linear(obs_dim + act_dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, obs, actions):
        return self.q(torch.cat([obs, actions], dim=1))  # RAISE


class Agent:
    def __init__(self, obs_dim=3, act_dim=1, device="auto"):
        self.device = torch.device("cuda" if device == "auto" else device)
        self.dims = (obs_dim, act_dim)
        self.critic = ContinuousCritic(obs_dim, act_dim).to(self.device)
        self.optimizer = torch.optim.Adam(self.critic.parameters(), lr=1e-3)
        self.replay_buffer = ReplayBuffer(64, obs_dim, act_dim, self.device)

    def save_replay_buffer(self, stream):
        pickle.dump(self.replay_buffer, stream)

    def load_replay_buffer(self, stream):
        restored = pickle.load(stream)  # ALSO
        assert isinstance(restored, ReplayBuffer)
        self.replay_buffer = restored  # ROOT

    def collect(self, steps):
        obs = torch.zeros(self.dims[0])
        for _ in range(steps):
            action = torch.tensor([random.uniform(-1, 1)])
            following = obs * 0.9 + action
            self.replay_buffer.add(obs, following, action, -following.abs().sum())
            obs = following

    def train(self, gradient_steps, batch=8, gamma=0.9):
        for _ in range(gradient_steps):
            obs, actions, rewards, next_obs = self.replay_buffer.sample(batch)  # ALSO
            with torch.no_grad():
                target = rewards + gamma * self.critic(next_obs, -next_obs[:, :1] * 0.5)
            loss = (self.critic(obs, actions) - target).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def learn(self, steps):
        self.collect(steps)
        return self.train(2)


def main():
    torch.manual_seed(0)
    random.seed(0)
    workstation = Agent()
    print("workstation", workstation.learn(20))
    stream = io.BytesIO()
    workstation.save_replay_buffer(stream)
    stream.seek(0)
    edge = Agent(device="cpu")
    edge.load_replay_buffer(stream)  # ALSO
    print("edge", edge.learn(4))


if __name__ == "__main__":
    main()
