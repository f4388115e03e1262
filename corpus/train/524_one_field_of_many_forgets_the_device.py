# source: https://github.com/mittagessen/kraken/pull/799
# mechanism: a registry names how each field becomes a tensor, and one of its functions makes no use of the device it is given
# phase: forward; failing op: aten::lt.Tensor
# expect: raises
import torch
from torch import nn

FIELDS = {}


def field(name):
    def keep(function):
        FIELDS[name] = function
        return function

    return keep


@field("lines")
def lines(values, device):
    return torch.tensor(values, dtype=torch.float32, device=device)


@field("lengths")
def lengths(values, device):
    return torch.tensor([int(value) for value in values])  # ROOT


class Recogniser(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scan = nn.Linear(width, 2)

    def forward(self, lines, lengths):
        steps = torch.arange(lines.shape[1], device=lines.device)
        inside = steps < lengths[:, None]  # RAISE
        return (self.scan(lines) * inside[..., None]).sum(1)


device = torch.device("cuda")
record = {"lines": [[[1.0, 2.0], [0.5, 0.0]], [[3.0, 1.0], [0.0, 0.0]]], "lengths": ["2", "1"]}
batch = {name: FIELDS[name](values, device) for name, values in record.items()}
print(Recogniser(2).to(device)(**batch).shape)
