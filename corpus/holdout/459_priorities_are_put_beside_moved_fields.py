# source: none; a sampler that moves each field by a helper of its own, and makes one tensor more beside them
# mechanism: what the function makes without a device is put into the batch as it is
# phase: loss
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Sample:
    def __init__(self, state, target, ranks):
        self.state = state
        self.target = target
        self.ranks = ranks


class Memory:
    def __init__(self, size):
        self.state = torch.rand(size, 3)
        self.target = torch.rand(size)

    def draw(self, count):
        chosen = torch.randperm(len(self.state))[:count]

        def fetch(rows):
            return rows[chosen].to(dev)

        ranks = torch.arange(1, count + 1)  # ROOT
        return Sample(
            state=fetch(self.state),
            target=fetch(self.target),
            ranks=ranks,  # ALSO
        )


model = nn.Linear(3, 1).to(dev)
memory = Memory(20)
sample = memory.draw(6)
error = (model(sample.state).squeeze(1) - sample.target).abs()
loss = (error / sample.ranks).sum()  # RAISE
loss.backward()
