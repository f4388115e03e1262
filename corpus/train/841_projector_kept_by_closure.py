# source: mfinzi/equivariant-MLP#11
# mechanism: [plain attribute tensor] layer projects its weight onto the equivariant subspace with a function made in __init__; the function closes over a basis tensor built on CPU, which no move can reach
# phase: forward; failing op: aten::mm / mv (cpu basis, cuda weight)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def symmetric_projector(n):
    flip = torch.eye(n * n)[torch.arange(n * n).view(n, n).t().reshape(-1)]
    basis = torch.linalg.svd(torch.eye(n * n) + flip).U[:, : n * (n + 1) // 2]  # ROOT

    def project(flat):
        return basis @ (basis.t() @ flat)  # RAISE  # ALSO
    return project


class EquivariantLinear(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.proj_w = symmetric_projector(n)

    def forward(self, x):
        weight = self.proj_w(self.weight.reshape(-1)).reshape(*self.weight.shape)
        return F.linear(x, weight, self.bias)


net = nn.Sequential(EquivariantLinear(3), nn.ReLU(), EquivariantLinear(3)).to(dev)
net(torch.randn(2, 3, device=dev))
