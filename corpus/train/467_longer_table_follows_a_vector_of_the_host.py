# source: none; the shape of sinusoidal position tables that are made anew for longer inputs
# mechanism: a buffer is replaced by a longer one, on the device of frequencies that a factory has just made without one
# phase: forward, second batch; aten::add
# expect: raises
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class Positions(nn.Module):
    def __init__(self, width, length):
        super().__init__()
        self.width = width
        self.register_buffer("table", None, persistent=False)
        self.extend(length)

    def extend(self, length):
        pairs = self.width // 2
        exponents = torch.linspace(0, 1, pairs)  # ROOT
        rates = torch.exp(-4.0 * exponents)
        turns = torch.ones(length, device=rates.device).cumsum(0).sub(1)
        angles = turns[:, None] * rates
        self.table = torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, tokens):
        if tokens.shape[1] > self.table.shape[0]:
            self.extend(tokens.shape[1])  # ALSO
        return tokens + self.table[: tokens.shape[1]]  # RAISE  # ALSO


positions = Positions(6, length=4).to(device)
for length in (3, 4, 7):
    seen = positions(torch.randn(2, length, 6, device=device))
print(seen.shape)
