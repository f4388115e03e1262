# source: https://github.com/soloist97/densecap-pytorch/pull/7
# mechanism: a store is kept on the host by intent, and the line that reads it moves the drawn numbers to the GPU of something else
# phase: replay; failing op: aten::index.Tensor
# expect: raises
import torch
from torch import nn


class Store:
    """Past rows, too many for the GPU; what is drawn is brought over."""

    def __init__(self, size, width, device):
        self.rows = torch.zeros(size, width, device="cpu")
        self.worth = torch.ones(size, device=device)
        self.filled = 0

    def add(self, rows):
        end = self.filled + len(rows)
        self.rows[self.filled : end] = rows.cpu()
        self.filled = end

    def draw(self, count):
        chosen = torch.randint(0, self.filled, (count,))
        rows = self.rows[chosen.to(self.worth.device)]  # ROOT # RAISE
        return rows.to(self.worth.device), chosen


device = torch.device("cuda")
net = nn.Linear(4, 1).to(device)
store = Store(20, 4, device)
store.add(torch.randn(6, 4, device=device))
rows, chosen = store.draw(3)
loss = (net(rows).squeeze(1) * store.worth[chosen.to(device)]).sum()
loss.backward()
