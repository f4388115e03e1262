# source: huggingface/trl#1577
# mechanism: a base class places the network that it is given; a class derived from it keeps a second one as it is
# phase: training; aten::linear (mat1)
# expect: raises
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self, features=6):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 8), nn.LeakyReLU(), nn.Linear(8, 1))

    def forward(self, x):
        return self.layers(x)  # RAISE


class Placement:
    def __init__(self, device):
        self.device = device

    def place(self, module):
        return module.train().to(self.device)


class Session:
    def __init__(self, generator, device):
        self.placement = Placement(device)
        self.generator = self.placement.place(generator)
        self.device = device


class Adversarial(Session):
    def __init__(self, generator, critic, device="cuda:0"):
        super().__init__(generator, device)
        self.critic = critic.requires_grad_(True)  # ROOT

    def losses(self, count):
        made = self.generator(torch.randn(count, 3, device=self.device))
        return [network(made).mean() for network in (self.critic, self.critic.layers[0])]


generator = nn.Linear(3, 6)
critic = Critic()
Adversarial(generator, critic).losses(4)
