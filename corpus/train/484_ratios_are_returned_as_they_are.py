# source: importance sampling in off-policy training: the sampler brings the trajectories over, its ratios stay behind
# mechanism: a method returns what it moves beside a value that it computes on the CPU and does not move
# phase: loss; aten::mul
# expect: raises
import torch

device = torch.device("cuda", 0)


class Trajectories:
    def __init__(self, count):
        self.states = torch.randn(count, 6)
        self.rewards = torch.randn(count)
        self.behaviour = torch.full((count,), 0.25)

    def draw(self, count, onto):
        chosen = torch.randperm(len(self.rewards))[:count]
        ratios = 1.0 / self.behaviour[chosen]  # ALSO
        ratios = ratios / ratios.mean()  # ALSO
        return [part[chosen].to(onto) for part in (self.states, self.rewards)], ratios  # ROOT


critic = torch.nn.Linear(6, 1).to(device)
memory = Trajectories(40)
(states, rewards), ratios = memory.draw(8, device)  # ALSO
error = rewards - critic(states).squeeze(-1)
loss = (ratios * error.square()).mean()  # RAISE
loss.backward()
