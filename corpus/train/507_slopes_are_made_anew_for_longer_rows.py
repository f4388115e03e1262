# source: https://github.com/open-lm-engine/lm-engine/pull/104
# mechanism: whoever needs a table has it made anew if it is too short, and not if it is on another device
# phase: forward after a trial on the host; failing op: aten::add.Tensor
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class Slopes:
    def __init__(self, heads):
        self.heads = heads
        self.made = torch.empty(heads, 0, 0)

    def make(self, length, device):
        steep = 2.0 ** -torch.arange(1, self.heads + 1, device=device)
        steps = torch.arange(length, device=device)
        self.made = -steep[:, None, None] * (steps[None] - steps[:, None]).abs()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.joint = nn.Linear(width, 2 * width)
        self.slopes = Slopes(heads)

    def forward(self, rows):
        count, length, _ = rows.shape
        query, key = self.joint(rows).view(count, length, 2, self.heads, -1).transpose(1, 3).unbind(2)
        if self.slopes.made.shape[-1] < length:  # ROOT
            self.slopes.make(length, rows.device)
        scores = query @ key.mT + self.slopes.made[:, :length, :length]  # RAISE  # ALSO
        return F.softmax(scores, -1)


attention = Attention(8, 2)
attention(torch.randn(1, 5, 8))
attention = attention.cuda()
print(attention(torch.randn(3, 5, 8).cuda()).shape)
