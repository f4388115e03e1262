# source: losses that keep a frozen encoder out of their state_dict by object.__setattr__
# mechanism: a module that is stored past nn.Module's own __setattr__ is no child, and is not moved
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn

device = torch.device("cuda", 0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)

    def forward(self, rows):
        return self.inner(rows).tanh()  # RAISE


class PerceptualLoss(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))
        object.__setattr__(self, "encoder", encoder.eval())  # ROOT

    def forward(self, made, wanted):
        return self.scale * (self.encoder(made) - self.encoder(wanted)).square().mean()


criterion = PerceptualLoss(Encoder()).to(device)  # ALSO
made = torch.randn(3, 6, device=device, requires_grad=True)
criterion(made, torch.randn(3, 6, device=device)).backward()
