# source: https://github.com/cpnota/autonomous-learning-library/pull/249
# mechanism: a replay buffer keeps its rows on the CPU and brings back what it samples; a subclass samples in its own way, and does not
# phase: loss; aten::linear
# expect: raises
import random

import torch

device = torch.device("cuda")


class Replay:
    def __init__(self, device):
        self.device, self.rows = device, []

    def store(self, state, action, reward):
        self.rows.append((state.detach().cpu(), action.detach().cpu(), reward.detach().cpu()))

    def sample(self, count):
        columns = zip(*random.sample(self.rows, count))
        return [torch.stack(column).to(self.device) for column in columns]


class PrioritizedReplay(Replay):
    def sample(self, count):
        priorities = [abs(reward.item()) for _, _, reward in self.rows]
        chosen = random.choices(self.rows, weights=priorities, k=count)
        return [torch.stack(column) for column in zip(*chosen)]  # ROOT


class Agent:
    def __init__(self, replay):
        self.replay = replay
        self.values = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2)).to(device)
        self.optimizer = torch.optim.Adam(self.values.parameters())

    def act(self, state):
        with torch.no_grad():
            action = self.values(state).argmax(-1)
        self.replay.store(state, action, state.sum() * (1 - 2 * action))

    def learn(self):
        states, actions, rewards = self.replay.sample(8)
        chosen = self.values(states).gather(1, actions[:, None]).squeeze(1)  # RAISE
        loss = torch.nn.functional.smooth_l1_loss(chosen, rewards)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


for replay in (Replay(device), PrioritizedReplay(device)):
    agent = Agent(replay)
    for _ in range(12):
        agent.act(torch.randn(4, device=device))
    agent.learn()
