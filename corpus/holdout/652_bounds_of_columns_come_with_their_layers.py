# source: pyg-team/pytorch-frame PR#432
# mechanism: a loop goes over the bounds of columns, a tensor of the device, together with a list of weights, and cuts with them
# phase: training loop; slice
# expect: silent
# kinds: implicit-sync
import torch
from torch import nn


class Columns:
    def __init__(self, values, offset):
        self.values, self.offset = values, offset

    def to(self, device):
        return Columns(self.values.to(device), self.offset.to(device))


class ColumnEncoder(nn.Module):
    def __init__(self, widths, out):
        super().__init__()
        self.weight_list = nn.ParameterList(nn.Parameter(torch.randn(w, out)) for w in widths)

    def forward(self, columns):
        outs = []
        for first, last, weight in zip(columns.offset[:-1],  # ROOT
                                       columns.offset[1:],
                                       self.weight_list):
            outs.append(columns.values[:, first:last] @ weight)  # RAISE
        return torch.stack(outs, dim=1)


device = torch.device("cuda:0")
widths = [3, 5, 2]
offset = torch.tensor([0, 3, 8, 10])
encoder = ColumnEncoder(widths, 4).to(device)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)
for _ in range(3):
    soil = Columns(torch.randn(6, sum(widths)), offset).to(device)
    optimizer.zero_grad()
    encoder(soil).square().mean().backward()
    optimizer.step()
