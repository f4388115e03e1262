# source: motornet-org/MotorNet PR#15 (Fix .to(device) not propagating to nested modules)
# mechanism: [factory call without device=] the call has device=, but of a device the submodule tracks in its own .to(); the parent's .to() goes through _apply() and skips that override
# phase: environment step; failing op: aten::sub
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Muscle(nn.Module):
    def __init__(self):
        super().__init__()
        self._device = torch.device("cpu")  # ROOT
        self.register_buffer("tau", torch.tensor([0.1, 0.3]))

    def to(self, device):
        self._device = torch.device(device)
        return super().to(device)

    def initial_state(self, batch):
        return torch.zeros(batch, 2, device=self._device)  # ALSO

    def integrate(self, state, action):
        return state + (action - state) * self.tau  # RAISE

class Effector(nn.Module):
    def __init__(self, muscle):
        super().__init__()
        self.muscle, self.state = muscle, None

    def reset(self, batch):
        self.state = self.muscle.initial_state(batch)

    def step(self, action):
        self.state = self.muscle.integrate(self.state, action)

plant = Effector(Muscle()).to(dev)
policy = nn.Linear(4, 2).to(dev)
plant.reset(3)
plant.step(policy(torch.randn(3, 4, device=dev)).sigmoid())
