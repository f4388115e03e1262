# source: none; what agents, caches and metrics do when they do it right
# mechanism: networks in a list that is complete, entries that come back from the host, settings merged in order
# phase: forward
# expect: clean
import functools

import torch
from torch import nn

STANDARD = {"device": "cpu", "size": 4}


class Agent:
    def __init__(self, **given):
        settings = {**STANDARD, **given}
        self.online, self.target = nn.Linear(settings["size"], 2), nn.Linear(settings["size"], 2)
        self.networks = [self.online, self.target]
        for network in self.networks:
            network.to(settings["device"])
        self.parked = {}

    @functools.cached_property
    def device(self):
        return next(self.online.parameters()).device

    def park(self, name, value):
        self.parked[name] = value.detach().cpu()

    def take(self, name):
        return self.parked.pop(name).to(self.device)

    def update(self, x):
        with torch.no_grad():
            wanted = self.target(x)
        loss = (self.online(x) - wanted).pow(2).mean()
        loss.backward()
        return loss


agent = Agent(device="cuda")
for step in range(3):
    agent.park("x", torch.rand(5, 4, device=agent.device))
    agent.update(agent.take("x"))
