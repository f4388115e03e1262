# source: pyg-team/pytorch_geometric#1813
# mechanism: a batch makes a new one of its moved fields, and hands one on as it is
# phase: forward; aten::index_add
# expect: raises
import dataclasses

import torch


@dataclasses.dataclass
class Batch:
    x: torch.Tensor
    owner: torch.Tensor
    labels: torch.Tensor

    def to(self, device):
        return Batch(
            x=self.x.to(device),
            owner=self.owner,  # ROOT
            labels=self.labels.to(device),
        )


def pool(x, owner, count):
    return x.new_zeros(count, x.size(1)).index_add(0, owner, x)  # RAISE


def score(batch):
    return pool(batch.x, batch.owner, batch.labels.numel()).sum()


batch = Batch(torch.rand(6, 3), torch.arange(6) // 2, torch.zeros(3)).to("cuda")
score(batch)
