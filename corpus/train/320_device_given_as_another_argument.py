# source: https://github.com/LucasAlegre/morl-baselines/issues/153
# mechanism: the device is the third argument of the call, and the fourth of the constructor, which has a default for it
# phase: forward; aten::linear
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Memory:
    def __init__(self, size, width, name="memory", device="cpu"):  # ALSO
        self.name, self.device = name, device
        self.states = torch.zeros(size, width)
        self.length = 0

    def add(self, state):
        self.states[self.length % len(self.states)] = state
        self.length += 1

    def sample(self, count):
        chosen = torch.randint(min(self.length, len(self.states)), (count,))
        return self.states[chosen].to(self.device)


class Learner:
    def __init__(self, width, device):
        self.critic = torch.nn.Linear(width, 1).to(device)
        self.memory = Memory(8, width, device)  # ROOT

    def update(self):
        batch = self.memory.sample(4)
        return self.critic(batch).square().mean()  # RAISE


learner = Learner(3, dev)
for _ in range(5):
    learner.memory.add(torch.randn(3))
learner.update().backward()
