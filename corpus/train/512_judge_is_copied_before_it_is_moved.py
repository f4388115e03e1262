# source: https://github.com/ChenglongChen/pytorch-DRL/issues/2
# mechanism: of two nets that a learner keeps one is never moved, and a copy of it is asked before it is
# phase: first update; failing op: aten::linear
# expect: raises
import copy

import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.score = nn.Linear(states + actions, 1)

    def forward(self, state, action):
        return self.score(torch.cat([state, action], -1))  # RAISE


class Learner:
    def __init__(self, states, actions, device):
        self.device = device
        self.actor = nn.Linear(states, actions).to(device)
        self.judge = Judge(states, actions)  # ROOT
        self.slow_actor = copy.deepcopy(self.actor)
        self.slow_judge = copy.deepcopy(self.judge)  # ALSO

    def update(self, state, action, reward, then):
        state, action, reward, then = (part.to(self.device) for part in (state, action, reward, then))
        with torch.no_grad():
            goal = reward + 0.9 * self.slow_judge(then, self.slow_actor(then).tanh())
        return (self.judge(state, action) - goal).square().mean()


learner = Learner(4, 2, torch.device("cuda"))
learner.update(torch.randn(5, 4), torch.randn(5, 2), torch.randn(5, 1), torch.randn(5, 4)).backward()
