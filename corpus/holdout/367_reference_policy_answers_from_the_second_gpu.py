# source: huggingface/trl PR#1190, vwxyzjn/lm-human-preference-details#21
# mechanism: the reference policy lies on the second GPU; what it answers is compared with the policy's on the first
# phase: loss; aten::sub
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.net = nn.Sequential(nn.Embedding(states, 8), nn.Linear(8, actions))

    @property
    def device(self):
        return self.net[1].weight.device

    def log_probs(self, states, actions):
        scores = self.net(states.to(self.device)).log_softmax(-1)
        return scores.gather(-1, actions.to(self.device)[:, None]).squeeze(-1)  # ALSO


def penalty(policy, reference, states, actions):
    with torch.no_grad():
        expected = reference.log_probs(states, actions)  # ROOT
    ours = policy.log_probs(states, actions)
    return (ours - expected).mean()  # RAISE  # ALSO


policy, reference = Policy(6, 3).to("cuda:0"), Policy(6, 3).to("cuda:1")
states, actions = torch.tensor([1, 4, 2], device="cuda:0"), torch.tensor([0, 2, 1], device="cuda:0")
penalty(policy, reference, states, actions).backward()
