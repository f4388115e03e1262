# source: pytorch/pytorch PR#2795 (review: parameters on several devices have to be refused)
# mechanism: a head is replaced after the model was moved; torch's own Python code joins all parameters to one vector and refuses
# phase: optimizer step; torch.nn.utils.parameters_to_vector, no operator
# expect: raises
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


class Policy(nn.Module):
    def __init__(self, seen, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(seen, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh())
        self.head = nn.Linear(16, actions)

    def forward(self, seen):
        return self.head(self.body(seen)).log_softmax(-1)


class CrossEntropySearch:
    def __init__(self, policy, spread=0.1):
        self.policy, self.spread = policy, spread

    def step(self, rate):
        centre = parameters_to_vector(self.policy.parameters())  # RAISE
        tries = centre + self.spread * torch.randn(8, len(centre), device=centre.device)
        best = max(tries, key=rate)
        vector_to_parameters(best, self.policy.parameters())


policy = Policy(4, 2).to("cuda")
policy.head = nn.Linear(16, 3)  # ROOT
search = CrossEntropySearch(policy)  # ALSO
for _ in range(3):
    search.step(lambda weights: -weights.square().sum())
