# source: page tables that are kept on the device and on the host
# mechanism: a bookmaker keeps odds for the device and for the host, and makes both on the device
# phase: betting; failing op: aten::index_add_
# expect: raises
import dataclasses

import torch
from torch import nn

dev = torch.device("cuda", 0)


@dataclasses.dataclass
class Book:
    gpu_odds: torch.Tensor
    host_odds: torch.Tensor

    def bet(self, horses, stakes):
        chosen = torch.tensor(horses)
        self.host_odds.index_add_(0, chosen, torch.tensor(stakes))  # RAISE
        self.gpu_odds.copy_(self.host_odds)


def opened(horses, where):
    return Book(
        gpu_odds=torch.ones(horses, device=where),
        host_odds=torch.ones(horses, device=where),  # ROOT
    )


book = opened(3, dev)
book.bet([0, 2], [1.0, 2.5])
nn.Linear(3, 1).to(dev)(book.gpu_odds)
