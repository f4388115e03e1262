# source: thu-ml/tianshou#69, facebookresearch/ReAgent#297
# mechanism: an agent that is no module has a `to()` of its own, which moves the network and not its copy
# phase: loss; aten::linear
# expect: raises
import copy

import torch
from torch import nn


class Agent:
    def __init__(self, width, actions, decay=0.99):
        self.network = nn.Sequential(nn.Linear(width, 8), nn.ReLU(), nn.Linear(8, actions))
        self.target = copy.deepcopy(self.network)
        self.decay = decay

    def to(self, device):
        self.network.to(device)  # ROOT
        return self

    def expected(self, reward, following):
        with torch.no_grad():
            return reward + self.decay * self.target(following).amax(1)  # RAISE

    def loss(self, state, reward, following):
        return nn.functional.smooth_l1_loss(self.network(state).amax(1), self.expected(reward, following))


agent = Agent(3, 2).to("cuda")
state, following = torch.randn(2, 4, 3, device="cuda")
agent.loss(state, torch.ones(4, device="cuda"), following).backward()
