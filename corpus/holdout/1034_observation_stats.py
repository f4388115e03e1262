# source: ARISE-Initiative/robomimic#81
# mechanism: normalization statistics that went through numpy-style host arrays are used as host tensors on observations that are already on the GPU
# expect: raises
import math
import random

import torch
from torch import nn


def recursive_map(value, function):
    if isinstance(value, dict):
        return {k: recursive_map(v, function) for k, v in value.items()}
    return function(value)


class DemoDataset:
    def __init__(self, episodes=3, length=8, seed=0):
        rng = random.Random(seed)
        self.keys = {"eef_pos": 3, "joint": 5}
        self.rows = []
        for _ in range(episodes * length):
            obs = {k: [rng.gauss(2.0, 3.0) for _ in range(d)] for k, d in self.keys.items()}
            self.rows.append({"obs": obs, "action": [math.tanh(obs["joint"][0]), math.tanh(obs["eef_pos"][2])]})

    def normalization_stats(self):
        stats = {}
        for key in self.keys:
            columns = list(zip(*(row["obs"][key] for row in self.rows)))
            mean = [sum(c) / len(c) for c in columns]
            std = [math.sqrt(sum((v - m) ** 2 for v in c) / len(c)) + 1e-3 for c, m in zip(columns, mean)]
            stats[key] = {"mean": mean, "std": std}
        return stats

    def batches(self, size):
        for start in range(0, len(self.rows), size):
            rows = self.rows[start:start + size]
            obs = {k: [r["obs"][k] for r in rows] for k in self.keys}
            yield recursive_map({"obs": obs, "actions": [r["action"] for r in rows]}, torch.tensor)


def normalize_obs(obs, stats):
    assert set(obs) <= set(stats)
    return {key: (value - stats[key]["mean"]) / stats[key]["std"] for key, value in obs.items()}  # RAISE # ALSO


class Algo(nn.Module):
    def __init__(self, keys, action_dim, device):
        super().__init__()
        self.device = device
        self.policy = nn.Sequential(nn.Linear(sum(keys.values()), 16), nn.ReLU(), nn.Linear(16, action_dim))
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=1e-2)
        self.to(device)

    def process_batch(self, batch):
        return recursive_map(batch, lambda t: t.to(self.device))

    def postprocess(self, batch, stats):
        if stats is None:
            return batch
        return {**batch, "obs": normalize_obs(batch["obs"], stats)}  # ALSO

    def train_on_batch(self, batch):
        inputs = torch.cat([batch["obs"][k] for k in sorted(batch["obs"])], dim=-1)
        loss = (self.policy(inputs) - batch["actions"]).abs().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def run_epoch(algo, dataset, stats):
    losses = []
    for raw in dataset.batches(8):
        batch = algo.postprocess(algo.process_batch(raw), stats)  # ALSO
        losses.append(algo.train_on_batch(batch))
    return sum(losses) / len(losses)


def train(config):
    torch.manual_seed(config["seed"])
    dataset = DemoDataset()
    algo = Algo(dataset.keys, 2, torch.device(config["device"]))
    stats = None
    if config["hdf5_normalize_obs"]:
        stats = recursive_map(dataset.normalization_stats(), torch.tensor)  # ROOT
    return [round(run_epoch(algo, dataset, stats), 4) for _ in range(config["epochs"])]  # ALSO


if __name__ == "__main__":
    print(train({"seed": 0, "device": "cuda", "hdf5_normalize_obs": True, "epochs": 2}))
