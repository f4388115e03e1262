# source: https://github.com/lucidrains/rotary-embedding-torch/pull/48
# mechanism: the method that grows a mask returns it if it is there and large enough, whatever device it is on
# phase: second half of a comparison of devices; failing op: aten::masked_fill.Scalar
# expect: raises
import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.pair = nn.Linear(width, 2 * width)
        self._hidden = None

    def hidden(self, length, device):
        if self._hidden is not None and self._hidden.shape[0] >= length:  # ROOT
            return self._hidden[:length, :length]  # ALSO
        self._hidden = torch.ones(length, length, dtype=torch.bool, device=device).triu(1)
        return self._hidden

    def forward(self, rows):
        query, key = self.pair(rows).chunk(2, -1)
        scores = query @ key.mT
        hidden = self.hidden(rows.shape[1], rows.device)
        return scores.masked_fill(hidden, float("-inf")).softmax(-1)  # RAISE


def compare(model, rows):
    found = []
    for device in ("cpu", "cuda"):
        with torch.no_grad():
            found.append(model.to(device)(rows.to(device)).cpu())
    return (found[0] - found[1]).abs().max()


print(compare(Causal(4), torch.randn(2, 5, 4)))
