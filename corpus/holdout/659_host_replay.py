# source: cpnota/autonomous-learning-library PR#187 (as merged)
# mechanism: transitions rest on the host and are moved as one batch when they are sampled, for a learner on the GPU
# phase: training loop
# expect: clean
import copy

import numpy as np
import torch
from torch import nn


class Observation(dict):
    @classmethod
    def array(cls, items):
        return cls({k: torch.stack([it[k] for it in items]) for k in items[0]})

    def to(self, device):
        return Observation({k: v.to(device) for k, v in self.items()})


class ReplayMemory:
    def __init__(self, size, device="cpu", store_device=None):
        self.rows = []
        self.capacity = int(size)
        self.pos = 0
        self.device = torch.device(device)
        self.store_device = torch.device(store_device or device)
        self.priority = np.zeros(self.capacity, dtype=np.float32)
        self._last = None

    def store(self, obs, action, next_obs):
        row = (obs.to(self.store_device), action, next_obs.to(self.store_device))
        self.priority[self.pos] = max(1.0, self.priority.max())
        self.rows[self.pos : self.pos + 1] = [row]
        self.pos = (self.pos + 1) % self.capacity

    def sample(self, n):
        p = self.priority[: len(self.rows)] / self.priority[: len(self.rows)].sum()
        self._last = np.random.choice(len(self.rows), n, p=p / p.sum())
        weights = torch.from_numpy((len(self.rows) * p[self._last]) ** -0.4).float().to(self.device)
        picked = [self.rows[i] for i in self._last]
        obs = Observation.array([r[0] for r in picked]).to(self.device)
        actions = torch.tensor([r[1] for r in picked], device=self.device)
        next_obs = Observation.array([r[2] for r in picked]).to(self.device)
        return obs, actions, next_obs["reward"], next_obs, weights

    def update_priorities(self, errors):
        self.priority[self._last] = errors.abs().cpu().numpy() + 1e-5


def observe(where):
    reward = float(-np.abs(where - 0.5).sum())
    return Observation(pos=torch.from_numpy(where.copy()), reward=torch.tensor(reward))


device = torch.device("cuda:0")
q = nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 6)).to(device)
target_q = copy.deepcopy(q)
discount = torch.tensor(0.95)
opt = torch.optim.Adam(q.parameters(), lr=1e-3)
memory = ReplayMemory(64, device=device, store_device="cpu")
where = np.zeros(3, dtype=np.float32)
obs = observe(where)
for t in range(40):
    action = np.random.randint(6)
    where[action % 3] += 0.1 if action < 3 else -0.1
    next_obs = observe(where)
    memory.store(obs, action, next_obs)
    obs = next_obs
    if t < 16 or t % 4:
        continue
    o, a, r, n, w = memory.sample(8)
    with torch.no_grad():
        goal = r + discount * target_q(n["pos"]).max(1)[0]
    error = q(o["pos"]).gather(1, a[:, None]).squeeze(1) - goal
    opt.zero_grad()
    (w * error.pow(2)).mean().backward()
    opt.step()
    memory.update_priorities(error.detach())
