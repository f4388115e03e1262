# source: https://github.com/pytorch/pytorch/issues/147140
# mechanism: a batch of values and offsets has its own .to(), which makes a new batch of the moved values and the old offsets
# phase: forward; aten::index_select
# expect: raises
from dataclasses import dataclass

import torch

device = "cuda"


@dataclass
class Jagged:
    values: torch.Tensor
    owner: torch.Tensor
    rows: int

    def to(self, device, non_blocking=False):
        return Jagged(
            values=self.values.to(device, non_blocking=non_blocking),
            owner=self.owner,  # ROOT
            rows=self.rows,
        )

    def mapped(self, function):
        return Jagged(function(self.values), self.owner, self.rows)

    def sums(self):
        start = self.values.new_zeros(self.rows, self.values.shape[1])
        return start.index_add(0, self.owner, self.values)  # RAISE


def collate(rows):
    owner = torch.cat([torch.full((len(row),), k) for k, row in enumerate(rows)])
    return Jagged(torch.cat(rows), owner, len(rows))


embed = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.GELU()).to(device)
batch = collate([torch.randn(2, 3), torch.randn(4, 3)]).to(device)
print(batch.mapped(embed).sums().mean().item())
