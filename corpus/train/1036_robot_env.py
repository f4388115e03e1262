# source: mani-skill/ManiSkill#1278
# mechanism: an environment that simulates on the CPU creates tensors without naming its device, so they follow the process default, which the user set to the GPU
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class SceneConfig:
    num_envs: int = 2
    links: int = 3
    sim_device: str = "cpu"
    dt: float = 0.05


class Link:
    def __init__(self, name, scene):
        self.name = name
        self.scene = scene
        self.device = scene.device
        self.angle = torch.zeros(scene.num_envs, device=self.device)
        self.velocity = torch.zeros(scene.num_envs, device=self.device)

    def apply(self, torque):
        self.velocity = 0.95 * self.velocity + torque * self.scene.dt
        self.angle = self.angle + self.velocity * self.scene.dt


class Articulation:
    def __init__(self, scene, count):
        self.scene = scene
        self.device = scene.device
        self.links = [Link(f"link_{i}", scene) for i in range(count)]
        self.limits = torch.full((count,), 1.5)  # ROOT

    @property
    def qpos(self):
        return torch.stack([link.angle for link in self.links], dim=1)

    def set_action(self, action):
        target = action.to(self.device).clamp(-1, 1)
        headroom = self.limits - self.qpos.abs()  # RAISE # ALSO
        for i, link in enumerate(self.links):
            link.apply(target[:, i] * headroom[:, i].clamp(min=0))


class Scene:
    def __init__(self, config):
        self.device = torch.device(config.sim_device)
        self.num_envs = config.num_envs
        self.dt = config.dt
        self.robot = Articulation(self, config.links)


class ReachEnv:
    def __init__(self, config):
        self.config = config
        self.reset()

    def reset(self):
        self.scene = Scene(self.config)
        self.goal = torch.full((self.config.num_envs,), 0.4, device=self.scene.device)
        return self.observe()

    def observe(self):
        return torch.cat([self.scene.robot.qpos, self.goal[:, None]], dim=1)

    def step(self, action):
        self.scene.robot.set_action(action)
        reward = -(self.scene.robot.qpos.sum(1) - self.goal).abs()
        return self.observe(), reward


class Policy(nn.Module):
    def __init__(self, obs_dim, act_dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(obs_dim, 16), nn.Tanh(), nn.Linear(16, act_dim))

    @torch.no_grad()
    def act(self, obs):
        device = self.net[0].weight.device
        return torch.tanh(self.net(obs.to(device)))


def rollout(env, policy, steps):
    obs, total = env.reset(), 0.0
    for _ in range(steps):
        obs, reward = env.step(policy.act(obs))
        total += reward.mean().item()
    return total


def main():
    torch.set_default_device("cuda")
    torch.manual_seed(0)
    config = SceneConfig()
    policy = Policy(config.links + 1, config.links)
    print("return", rollout(ReachEnv(config), policy, 5))


if __name__ == "__main__":
    main()
