# source: awslabs/graphstorm PR#19
# mechanism: what was computed once is kept in a table on the host; the second time it is given out as it lies there
# phase: second epoch; aten::linear
# expect: raises
import torch
from torch import nn


class Remembering(nn.Module):
    def __init__(self, encoder, rows, width):
        super().__init__()
        self.encoder = encoder
        self.table = torch.zeros(rows, width)
        self.known = set()

    def forward(self, x, row):
        if row in self.known:
            return self.table[[row]]  # ROOT
        with torch.no_grad():
            made = self.encoder(x)
        self.table[row] = made[0].cpu()
        self.known.add(row)
        return made


remember = Remembering(nn.Linear(3, 4).cuda(), rows=5, width=4)
head = nn.Linear(4, 2).cuda()
for epoch in range(2):
    for row in range(5):
        seen = remember(torch.rand(1, 3, device="cuda"), row)
        print(epoch, head(seen).sum().item())  # RAISE
