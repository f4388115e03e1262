# source: facebookresearch/BenchMARL#213, fix PR#214
# mechanism: [data not moved] experience is collected on the sampling device and moved when minibatches are drawn from the buffer; computing the advantages comes before the buffer and uses the critic on the training device
# phase: between collection and optimization; failing op: aten::linear / addmm (mat1 on cpu)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Buffer(list):
    def extend(self, batch):
        self.append({k: v.flatten(0, 1) for k, v in batch.items()})

    def sample(self, n, device):
        return {k: v[:n].to(device) for k, v in self[-1].items()}

class Mappo:
    def __init__(self, device):
        self.critic = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device)

    def process_batch(self, batch, gamma=0.9):
        value = self.critic(batch["obs"]).detach()  # RAISE
        target = batch["reward"] + gamma * self.critic(batch["next_obs"]).detach()
        return {**batch, "advantage": target - value, "target": target}

    def loss(self, batch):
        return (self.critic(batch["obs"]) - batch["target"]).pow(2).mean()

class Experiment:
    def __init__(self, sampling_device, train_device):
        self.sampling_device, self.train_device = sampling_device, train_device
        self.algorithm, self.buffer = Mappo(train_device), Buffer()

    def collect(self, envs=2, steps=4):
        x = torch.randn(envs, steps + 1, 4, device=self.sampling_device)
        return {"obs": x[:, :-1, :3], "next_obs": x[:, 1:, :3], "reward": x[:, 1:, 3:], "done": x[:, 1:, 3:] > 1}

    def run(self):
        group_batch = {k: v for k, v in self.collect().items() if k != "done"}  # ROOT
        self.buffer.extend(self.algorithm.process_batch(group_batch))  # ALSO
        self.algorithm.loss(self.buffer.sample(4, self.train_device)).backward()

Experiment("cpu", dev).run()
