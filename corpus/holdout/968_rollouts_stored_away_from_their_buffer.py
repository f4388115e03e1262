# source: facebookresearch/BenchMARL PR#180 (the collector's storing_device=train_device; rollouts are to follow the replay buffer's device)
# mechanism: [replay buffer] rollouts are stored on the training GPU, the buffer was configured for the host
# phase: filling of the buffer; failing op: aten::index_put_
# expect: raises
# root: experiment.py:_setup_collector: storing_device=self.config.train_device
from types import SimpleNamespace

import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class Buffer:
    def __init__(self, size, device):
        self.data = {"obs": torch.zeros(size, 3, device=device), "reward": torch.zeros(size, device=device)}
        self.cursor, self.size = 0, size

    def extend(self, rollout):
        n = len(rollout["reward"])
        where = (torch.arange(n) + self.cursor) % self.size
        for k, v in rollout.items():
            self.data[k][where] = v                    # RAISE  # ALSO
        self.cursor += n


class Collector:
    def __init__(self, policy, device, storing_device):
        self.policy, self.device, self.storing_device = policy, device, storing_device

    def rollout(self, steps):
        obs = torch.ones(steps, 3, device=self.device)
        out = {"obs": obs, "reward": self.policy(obs).squeeze(-1).detach()}
        return {k: v.to(self.storing_device) for k, v in out.items()}

config = SimpleNamespace(sampling_device="cpu", train_device=dev, buffer_device="cpu")
collector = Collector(
    nn.Linear(3, 1),
    device=config.sampling_device,
    storing_device=config.train_device,                # ROOT
)
buffer = Buffer(16, config.buffer_device)
buffer.extend(collector.rollout(6))
