# source: https://github.com/choru-k/Reinforcement-Learning-Pytorch-Cartpole/issues/1
# mechanism: a deque holds the last frames; those of a reset are put there as they come, the later ones are moved
# phase: inference; aten::stack
# expect: raises
import collections

import torch

dev = torch.device("cuda", 0)


class Corridor:
    def reset(self):
        self.at = 0
        return torch.zeros(5).index_fill_(0, torch.tensor([self.at]), 1.0)

    def step(self, action):
        self.at = (self.at + action) % 5
        return torch.zeros(5).index_fill_(0, torch.tensor([self.at]), 1.0), float(self.at == 4)


class Agent:
    def __init__(self, network, length):
        self.network = network
        self.frames = collections.deque(maxlen=length)

    def begin(self, frame):
        for _ in range(self.frames.maxlen):
            self.frames.append(frame)  # ROOT

    def observe(self, frame):
        self.frames.append(frame.to(dev))

    def act(self):
        state = torch.stack(tuple(self.frames))  # RAISE
        return int(self.network(state.flatten()).argmax())


world = Corridor()
agent = Agent(torch.nn.Linear(15, 2).to(dev), length=3)
agent.begin(world.reset())  # ALSO
with torch.no_grad():
    frame, reward = world.step(1)
    agent.observe(frame)
    for _ in range(4):
        frame, reward = world.step(agent.act())
        agent.observe(frame)
