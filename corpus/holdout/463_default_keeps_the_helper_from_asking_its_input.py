# source: none; a helper follows its input's device if it is given None, and its default names the current GPU
# mechanism: nobody gives the device, and the work is done on the second GPU
# phase: forward; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

second = torch.device("cuda", 1)


def ramp(length, device):
    return torch.linspace(0, 1, length, device=device)


def position_bias(
    scores,
    slope=0.5,
    device="cuda",  # ROOT
):
    if device is None:
        device = scores.device
    steps = ramp(scores.shape[-1], device)
    return -slope * (steps[None, :] - steps[:, None]).abs()


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).T
        return (scores + position_bias(scores)).softmax(-1) @ x  # RAISE  # ALSO


model = Attention(4).to(second)
print(model(torch.rand(3, 4, device=second)).sum().item())
