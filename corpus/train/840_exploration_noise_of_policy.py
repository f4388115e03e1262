# source: pranz24/pytorch-soft-actor-critic PR#21
# mechanism: [plain attribute tensor] policy overrides to() and moves its plain tensors by hand, one by one; the noise tensor that is refilled in place at each call was forgotten
# phase: acting; failing op: aten::add (cuda mean, cpu noise)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class DeterministicPolicy(nn.Module):
    def __init__(self, num_inputs, num_actions, low, high):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(num_inputs, 8), nn.ReLU())
        self.mean = nn.Linear(8, num_actions)
        self.noise = torch.zeros(num_actions)  # ROOT
        self.action_scale = torch.full((num_actions,), (high - low) / 2.0)
        self.action_bias = torch.full((num_actions,), (high + low) / 2.0)

    def forward(self, state):
        return self.mean(self.body(state)).tanh() * self.action_scale + self.action_bias

    def sample(self, state):
        mean = self.forward(state)
        noise = self.noise.normal_(0.0, std=0.1).clamp(-0.25, 0.25)  # ALSO
        return mean + noise  # RAISE

    def to(self, device):
        self.action_scale = self.action_scale.to(device)  # ALSO
        self.action_bias = self.action_bias.to(device)  # ALSO
        return super().to(device)


policy = DeterministicPolicy(4, 2, -2.0, 2.0).to(dev)
greedy = policy(torch.randn(1, 4, device=dev))
action = policy.sample(torch.randn(1, 4, device=dev))
