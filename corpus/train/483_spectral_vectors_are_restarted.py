# source: spectral normalisation written by hand, whose power iteration is restarted between phases of a training
# mechanism: a function that goes through a model on the GPU replaces registered buffers by new ones made on the CPU
# phase: forward; aten::mv
# expect: raises
import torch
from torch import nn

device = torch.device("cuda", 0)


class Bounded(nn.Module):
    def __init__(self, width, height):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(height, width) / width)
        self.register_buffer("left", torch.randn(height))

    def forward(self, rows):
        right = nn.functional.normalize(self.weight.t() @ self.left, dim=0)  # RAISE
        self.left = nn.functional.normalize(self.weight @ right, dim=0).detach()
        return rows @ (self.weight / (self.left @ self.weight @ right)).t()


def restart(critic):
    for part in critic.modules():
        if isinstance(part, Bounded):
            part.left = torch.randn(part.weight.shape[0])  # ROOT


critic = nn.Sequential(Bounded(6, 8), nn.ReLU(), Bounded(8, 1), nn.Linear(1, 1)).to(device)
rows = torch.randn(5, 6, device=device)
critic(rows).mean().backward()
restart(critic)
critic(rows).mean().backward()
