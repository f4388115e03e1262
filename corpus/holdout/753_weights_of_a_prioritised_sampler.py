# source: pytorch/rl#2518
# mechanism: [priority weights] sampler keeps its priorities on the host and makes the importance weights from them there; the sampled transitions come from a storage on the GPU
# phase: loss; failing op: aten::mul
# expect: raises
import numpy as np
import torch
import torch.nn as nn
dev = torch.device("cuda", 0)

class LazyStorage:
    def __init__(self, device):
        self.device, self.data = device, {}

    def extend(self, td):
        self.data = {k: v.to(self.device) for k, v in td.items()}

    def get(self, index):
        return {k: v[index] for k, v in self.data.items()}

class PrioritizedSampler:
    def __init__(self, capacity, alpha, beta):
        self.alpha, self.beta = alpha, beta
        self.priorities = np.ones(capacity, dtype=np.float32)

    def update_priority(self, index, priority):
        self.priorities[index] = (priority + 1e-8) ** self.alpha

    def sample(self, storage, batch_size):
        p = self.priorities / self.priorities.sum()
        index = np.random.default_rng(0).choice(len(p), size=batch_size, p=p / p.sum())
        weight = torch.as_tensor(p[index])  # ROOT
        weight = torch.pow(weight / p.min().item(), -self.beta)  # ALSO
        return torch.as_tensor(index), {"_weight": weight}  # ALSO


storage, sampler = LazyStorage(dev), PrioritizedSampler(10, 0.7, 0.5)
storage.extend({"obs": torch.randn(10, 4), "reward": torch.randn(10)})
sampler.update_priority(np.arange(10), np.arange(10, dtype=np.float32))
qf = nn.Linear(4, 1).to(dev)
index, info = sampler.sample(storage, 5)
batch = storage.get(index)
td_error = batch["reward"] - qf(batch["obs"]).squeeze(-1)
loss = (info["_weight"] * td_error.pow(2)).mean()  # RAISE  # ALSO
loss.backward()
