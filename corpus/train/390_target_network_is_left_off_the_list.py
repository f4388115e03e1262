# source: pytorch forum, "DDPG: target networks stay on cpu"
# mechanism: an agent keeps a list of the networks that it moves, made before there were target networks
# phase: forward; aten::linear
# expect: raises
import copy

import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.first = nn.Linear(states + actions, 16)
        self.last = nn.Linear(16, 1)

    def forward(self, state, action):
        hidden = torch.cat([state, action], 1)
        return self.last(torch.relu(self.first(hidden)))  # RAISE


class Agent:
    def __init__(self, states, actions):
        self.actor = nn.Sequential(nn.Linear(states, actions), nn.Tanh())
        self.critic = Critic(states, actions)
        self.critic_target = copy.deepcopy(self.critic)
        self.networks = [self.actor, self.critic]  # ROOT

    def to(self, device):
        for network in self.networks:  # ALSO
            network.to(device)  # ALSO
        return self

    def update(self, state, reward):
        action = self.actor(state)
        with torch.no_grad():
            wanted = reward + 0.9 * self.critic_target(state, action)
        return (self.critic(state, action) - wanted).pow(2).mean()


agent = Agent(4, 2).to("cuda")
for step in range(3):
    agent.update(torch.rand(8, 4, device="cuda"), torch.ones(8, 1, device="cuda")).backward()
