# source: none; a method that takes its operands by `*args`
# mechanism: a part of a model works on a GPU of its own, and returns the result there from an inherited `forward()`
# phase: forward; failing op: aten::stack
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

near, far = torch.device("cuda:0"), torch.device("cuda:1")


class Kiln(nn.Linear):
    def __init__(self, width, place):
        super().__init__(width, width, device=place)
        self.place = place

    def forward(self, clay):
        clay = clay.to(self.place)
        return super().forward(clay)  # ROOT


class Workshop(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.shape = nn.Linear(width, width, device=near)
        self.kiln = Kiln(width, far)

    def shelf(self, *pots):
        return torch.stack(pots)  # RAISE

    def forward(self, clay):
        pot = self.shape(clay)
        return self.shelf(pot, self.kiln(pot))  # ALSO


print(Workshop(3)(torch.ones(2, 3, device=near)).sum())
