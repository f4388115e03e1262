# source: none; low-rank factors are parameters, their product is an attribute that each call makes anew
# mechanism: the product was made by a helper in the constructor; after the move another module reads it before any call
# phase: penalty; aten::matmul
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


def multiplied(left, right):
    scale = left.shape[1] ** -0.5
    return (left @ right) * scale


class LowRank(nn.Module):
    def __init__(self, width, rank):
        super().__init__()
        self.left = nn.Parameter(torch.randn(width, rank))
        self.right = nn.Parameter(torch.randn(rank, width))
        self.full = multiplied(self.left.data, self.right.data)  # ROOT

    def forward(self, x):
        self.full = multiplied(self.left, self.right)
        return x @ self.full


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = LowRank(6, 2)
        self.head = nn.Linear(6, 1)

    def penalty(self, probe):
        return (probe @ self.mix.full).norm()  # RAISE  # ALSO

    def forward(self, x):
        return self.head(self.mix(x))


model = Encoder().to(dev)
probe = torch.randn(3, 6, device=dev)
print(model.penalty(probe).item(), model(probe).sum().item())
