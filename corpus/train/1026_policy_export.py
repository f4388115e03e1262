# source: leggedrobotics/rsl_rl#189
# mechanism: the export wrapper refers to the live vision trunk instead of copying it, so sending the wrapper to the CPU also takes the training model's trunk off the GPU
# expect: raises
import copy
import io

import torch
from torch import nn


class Trunk(nn.Module):
    def __init__(self, channels=4):
        super().__init__()
        self.conv = nn.Conv2d(1, channels, 3, stride=2)
        self.channels = channels

    def forward(self, image):
        return torch.relu(self.conv(image)).mean((2, 3))  # RAISE


class Normalizer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("std", torch.ones(dim))

    def forward(self, x):
        return (x - self.mean) / self.std


class VisionPolicy(nn.Module):
    def __init__(self, state_dim, actions, cameras=("front", "wrist")):
        super().__init__()
        self.trunks = nn.ModuleDict({name: Trunk() for name in cameras})
        self.normalizer = Normalizer(state_dim)
        width = state_dim + sum(t.channels for t in self.trunks.values())
        self.mlp = nn.Sequential(nn.Linear(width, 16), nn.ELU(), nn.Linear(16, actions))

    def forward(self, obs):
        seen = [trunk(obs[name]) for name, trunk in self.trunks.items()]
        return self.mlp(torch.cat([self.normalizer(obs["state"])] + seen, dim=1))

    def as_exportable(self):
        return ExportedPolicy(self)  # ALSO


class ExportedPolicy(nn.Module):
    def __init__(self, policy):
        super().__init__()
        self.normalizer = copy.deepcopy(policy.normalizer)
        self.mlp = copy.deepcopy(policy.mlp)
        self.trunks = nn.ModuleList(policy.trunks.values())  # ROOT
        self.names = list(policy.trunks.keys())

    def forward(self, state, *images):
        seen = [trunk(image) for trunk, image in zip(self.trunks, images)]
        return self.mlp(torch.cat([self.normalizer(state)] + seen, dim=1))


def export(policy):
    wrapper = policy.as_exportable().to("cpu").eval()  # ALSO
    stream = io.BytesIO()
    torch.save(wrapper.state_dict(), stream)
    sample = wrapper(torch.zeros(1, 5), *(torch.zeros(1, 1, 8, 8) for _ in wrapper.names))
    return stream.tell(), tuple(sample.shape)


class Runner:
    def __init__(self, device, save_interval=2):
        self.device = device
        self.save_interval = save_interval
        self.policy = VisionPolicy(5, 3).to(device)
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-3)

    def observe(self, count=6):
        images = {name: torch.rand(count, 1, 8, 8, device=self.device) for name in self.policy.trunks}
        return {"state": torch.randn(count, 5, device=self.device), **images}

    def learn(self, iterations):
        for iteration in range(iterations):
            loss = (self.policy(self.observe()) - 0.1).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if iteration % self.save_interval == 1:
                print("exported", export(self.policy))  # ALSO
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    print("loss", Runner(torch.device("cuda")).learn(4))
