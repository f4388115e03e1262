# source: pytorch forum, positional encoding as a plain attribute
# mechanism: a table is a plain attribute of a module; a part of it has a name of its own where it fails
# phase: forward; aten::add.Tensor
# expect: raises
import torch
from torch import nn


class Positions(nn.Module):
    def __init__(self, width, longest=64):
        super().__init__()
        angle = torch.arange(longest)[:, None] / 10 ** torch.linspace(0, 4, width // 2)
        table = torch.zeros(longest, width)
        table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
        self.table = table[None]  # ROOT

    def forward(self, x, offset=0):
        window = self.table[:, offset : offset + x.size(1)]  # ALSO
        return x + window  # RAISE  # ALSO


model = nn.Sequential(nn.Embedding(7, 8), Positions(8), nn.Linear(8, 2)).to("cuda")
model(torch.zeros(2, 5, dtype=torch.long, device="cuda"))
