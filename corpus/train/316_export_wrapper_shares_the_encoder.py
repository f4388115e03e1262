# source: https://github.com/leggedrobotics/rsl_rl/pull/189
# mechanism: a wrapper for export takes the policy's modules instead of copies, and the policy is on the CPU afterwards
# phase: forward; aten::linear
# expect: raises
import copy
import io

import torch

dev = torch.device("cuda", 0)


class Policy(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ELU())
        self.actor = torch.nn.Linear(8, 2)

    def forward(self, observations):
        return self.actor(self.encoder(observations))  # RAISE


class ForExport(torch.nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.actor = copy.deepcopy(policy.actor)
        self.encoder = policy.encoder  # ROOT

    def forward(self, observations):
        return self.actor(self.encoder(observations)).clamp(-1, 1)


def export(policy):
    wrapper = ForExport(policy).to("cpu").eval()  # ALSO
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(wrapper, torch.zeros(1, 6)), file)
    return file.getvalue()


policy = Policy().to(dev)
optimizer = torch.optim.Adam(policy.parameters())
for iteration in range(2):
    loss = policy(torch.randn(3, 6, device=dev)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    export(policy)
