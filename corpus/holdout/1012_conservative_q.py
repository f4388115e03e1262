# source: ray-project/ray#13823
# mechanism: the policy moves the online critic to the GPU during set-up but the target critic built next to it is left on the host
# expect: raises
import random
from collections import deque

import torch
from torch import nn

CONFIG = {"obs_dim": 6, "actions": 3, "hidden": 16, "gamma": 0.97, "tau": 0.05, "min_q_weight": 0.5, "lr": 3e-3}


class QModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(config["obs_dim"], config["hidden"]), nn.ReLU(), nn.Linear(config["hidden"], config["actions"]))

    def forward(self, obs):
        return self.net(obs)  # RAISE


class ReplayMemory:
    def __init__(self, capacity=256):
        self.rows = deque(maxlen=capacity)

    def add(self, row):
        self.rows.append(row)

    def sample(self, count):
        columns = zip(*random.sample(list(self.rows), count))
        return [torch.stack(column) for column in columns]


class TargetMixin:
    def setup_target(self, config):
        self.target_model = QModel(config)  # ALSO
        self.target_model.load_state_dict(self.model.state_dict())
        for p in self.target_model.parameters():
            p.requires_grad_(False)

    @torch.no_grad()
    def update_target(self, tau):
        for slow, fast in zip(self.target_model.parameters(), self.model.parameters()):
            slow.mul_(1 - tau).add_(fast, alpha=tau)


class LossMixin:
    def compute_loss(self, obs, action, reward, following, done):
        q = self.model(obs)
        taken = q.gather(1, action[:, None]).squeeze(1)
        with torch.no_grad():
            best = self.target_model(following).max(1).values
            expected = reward + self.config["gamma"] * (1 - done) * best
        penalty = (q.logsumexp(1) - taken).mean()
        return (taken - expected).pow(2).mean() + self.config["min_q_weight"] * penalty


class ConservativePolicy(TargetMixin, LossMixin):
    def __init__(self, config, device):
        self.config = config
        self.device = torch.device(device)
        self.model = QModel(config)
        self.setup_target(config)
        self.setup_late()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=config["lr"])

    def setup_late(self):
        self.model = self.model.to(self.device)
        self.target_model = self.target_model.eval()  # ROOT

    def learn(self, batch):
        loss = self.compute_loss(*(t.to(self.device) for t in batch))
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.update_target(self.config["tau"])
        return loss.item()


def collect(memory, config, count=64):
    for _ in range(count):
        obs = torch.randn(config["obs_dim"])
        action = torch.randint(config["actions"], ())
        memory.add((obs, action, obs[action].clone(), obs + 0.1 * torch.randn_like(obs), torch.tensor(float(random.random() < 0.1))))


def main():
    torch.manual_seed(0)
    random.seed(0)
    memory = ReplayMemory()
    collect(memory, CONFIG)
    policy = ConservativePolicy(CONFIG, "cuda")
    for iteration in range(3):
        print(iteration, policy.learn(memory.sample(16)))


if __name__ == "__main__":
    main()
