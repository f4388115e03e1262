# source: pytorch/pytorch#147140
# mechanism: [plain attribute tensor] container holds data and a mask; its to() moves the data and carries the mask along as it is
# phase: reduction after the move; failing op: aten::where (cpu condition, cuda values)
# expect: raises
import torch

dev = torch.device("cuda", 0)


class MaskedBatch:
    def __init__(self, data, mask):
        self.data, self.mask = data, mask  # ALSO

    def _like(self, data):
        return MaskedBatch(data, self.mask)  # ALSO

    def to(self, *args, **kwargs):
        return self._like(self.data.to(*args, **kwargs))  # ROOT

    def log(self):
        return self._like(self.data.clamp_min(1e-6).log())

    def sum(self, dim):
        return torch.where(self.mask, self.data, 0.0).sum(dim)  # RAISE


def collate(rows):
    width = max(len(r) for r in rows)
    data = torch.stack([torch.nn.functional.pad(torch.tensor(r), (0, width - len(r))) for r in rows])
    mask = torch.arange(width) < torch.tensor([len(r) for r in rows])[:, None]
    return MaskedBatch(data, mask)


batch = collate([[0.2, 0.5, 0.3], [0.9, 0.1], [1.0]]).to(dev)
score = batch.log().sum(1)
