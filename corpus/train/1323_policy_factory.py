# source: huggingface/lerobot#126
# mechanism: the factory moves a freshly made policy to the device and, in the branch that loads pretrained weights, builds the policy anew and forgets the move
# expect: raises
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import nn


@dataclass
class PolicyConfig:
    state_dim: int = 6
    action_dim: int = 2
    hidden: int = 16
    horizon: int = 4


class VisionEncoder(nn.Module):
    def __init__(self, out):
        super().__init__()
        self.conv = nn.Conv2d(3, out, 3, stride=2)

    def forward(self, image):
        return torch.relu(self.conv(image)).mean(dim=(2, 3))  # RAISE


class ActionPolicy(nn.Module):
    def __init__(self, cfg, stats=None):
        super().__init__()
        self.cfg = cfg
        self.encoder = VisionEncoder(8)
        self.trunk = nn.Linear(8 + cfg.state_dim, cfg.hidden)
        self.head = nn.Linear(cfg.hidden, cfg.horizon * cfg.action_dim)
        stats = stats or {"mean": torch.zeros(cfg.state_dim), "std": torch.ones(cfg.state_dim)}
        self.register_buffer("state_mean", stats["mean"])
        self.register_buffer("state_std", stats["std"])
        self.queue = []

    def reset(self):
        self.queue.clear()

    def forward(self, batch):
        visual = self.encoder(batch["image"])
        state = (batch["state"] - self.state_mean) / self.state_std
        hidden = torch.relu(self.trunk(torch.cat([visual, state], dim=1)))
        return self.head(hidden).view(-1, self.cfg.horizon, self.cfg.action_dim)

    def select_action(self, batch):
        if not self.queue:
            self.queue.extend(self(batch).unbind(1))
        return self.queue.pop(0)


def save_pretrained(policy, path):
    state = {k: v.cpu() for k, v in policy.state_dict().items()}
    torch.save({"config": asdict(policy.cfg), "model": state}, path / "policy.pt")


def load_pretrained(path):
    blob = torch.load(path / "policy.pt", map_location="cpu")
    policy = ActionPolicy(PolicyConfig(**blob["config"]))
    policy.load_state_dict(blob["model"])
    return policy


def make_policy(cfg, device, pretrained_path=None, stats=None):
    device = torch.device(device)
    if pretrained_path is None:
        policy = ActionPolicy(cfg, stats)
        policy.to(device)
    else:
        policy = load_pretrained(pretrained_path)  # ROOT
    return policy  # ALSO


def observe(device):
    obs = {"image": torch.rand(1, 3, 9, 9), "state": torch.randn(1, 6)}
    return {k: v.to(device) for k, v in obs.items()}


def train(policy, device, steps):
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    for _ in range(steps):
        target = torch.zeros(1, policy.cfg.horizon, policy.cfg.action_dim, device=device)
        loss = nn.functional.l1_loss(policy(observe(device)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(policy, device, steps):
    policy.eval()
    policy.reset()
    return [policy.select_action(observe(device)).squeeze(0).tolist() for _ in range(steps)]


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    cfg = PolicyConfig()
    with tempfile.TemporaryDirectory() as folder:
        policy = make_policy(cfg, device)
        print(train(policy, device, 2))
        save_pretrained(policy, Path(folder))
        reloaded = make_policy(cfg, device, pretrained_path=Path(folder))
        print(len(evaluate(reloaded, device, 3)))


if __name__ == "__main__":
    main()
