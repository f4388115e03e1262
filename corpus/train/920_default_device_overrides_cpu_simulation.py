# source: mani-skill/ManiSkill PR#1278
# mechanism: [factory call without device=] under torch.set_default_device(cuda) a factory call without device makes a CUDA tensor; the simulation it belongs to lives on the CPU
# phase: simulation step; failing op: aten::add (cpu + cuda)
# expect: raises
# root: utils/structs/actor.py, link.py: factory calls without device=self.device
import torch

dev = torch.device('cuda', 0)


torch.set_default_device(dev)
class Actor:
    def __init__(self, n, device):
        self.device = device
        self.vel = torch.zeros(n, 3, device=device)

    def gravity(self):
        return torch.tensor([[0.0, 0.0, -9.8]])  # ROOT

    def step(self, dt):
        self.vel = self.vel + dt * self.gravity()  # RAISE

Actor(2, torch.device("cpu")).step(0.05)
