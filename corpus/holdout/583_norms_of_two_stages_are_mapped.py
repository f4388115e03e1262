# source: own
# mechanism: the norms of gradients on two GPUs are computed by a mapped function and joined in the same line
# phase: after backward; failing op: aten::stack
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Stage(nn.Linear):
    def forward(self, x):
        return super().forward(x.to(self.weight.device)).relu()


def with_gradient(net):
    return filter(lambda p: p.grad is not None, net.parameters())


def total_norm(net):
    return torch.stack(list(map(lambda p: p.grad.norm(), with_gradient(net)))).norm()  # ROOT # RAISE


net = nn.Sequential(Stage(3, 4, device="cuda:0"), Stage(4, 2, device="cuda:1"))
net(torch.randn(5, 3, device="cuda:0")).sum().backward()
total_norm(net)
