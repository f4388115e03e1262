# source: pytorch/tutorials PR#39
# mechanism: a policy gives the network's action in one branch and a drawn one, on the CPU, in the other; a batch of both is stacked
# phase: update; aten::stack
# expect: raises
import random
import torch
from torch import nn

random.seed(1)


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(3, 2)

    def act(self, state, explore):
        if random.random() < explore:
            return torch.randint(2, (1,))  # ROOT
        return self.head(state).argmax(dim=-1, keepdim=True)


def update(history):
    states = torch.stack([state for state, _ in history])
    actions = torch.stack([action for _, action in history])  # RAISE
    return states.sum() + actions.sum()


policy = Policy().to("cuda")
history = []
for step in range(12):
    state = torch.rand(3, device="cuda")
    with torch.no_grad():
        history.append((state, policy.act(state, explore=0.7)))
print(update(history))
