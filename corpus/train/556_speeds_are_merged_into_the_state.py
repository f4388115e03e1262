# source: none; the state of an optimizer is filled by `|=`
# mechanism: a restart merges the speeds that were read from a table into the optimizer's state, as they are
# phase: optimizer step; failing op: aten::add_
# expect: raises
import torch
from torch import nn


class Heavy(torch.optim.Optimizer):
    def __init__(self, weights, lr):
        super().__init__(weights, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                speed = self.state[weight]["speed"]
                speed.mul_(0.9).add_(weight.grad)  # RAISE
                weight.sub_(speed, alpha=group["lr"])


def restart(optimizer, table):
    for weight, speed in zip(optimizer.param_groups[0]["params"], table):
        optimizer.state[weight] |= {"speed": speed}  # ROOT


def read_table():
    return [torch.zeros(2, 3), torch.zeros(2)]  # ALSO


net = nn.Linear(3, 2).cuda()
optimizer = Heavy(net.parameters(), lr=0.1)
restart(optimizer, read_table())
net(torch.ones(1, 3).cuda()).sum().backward()
optimizer.step()
