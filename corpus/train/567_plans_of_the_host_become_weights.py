# source: none; `weight.data` is one target of a tuple assignment
# mechanism: plans are drawn on the host, and a helper makes their pieces the weights of a model on the accelerator
# phase: trial of a plan; failing op: aten::addmm
# expect: raises
import torch
from torch import nn


def draw(size, count):
    middle = torch.zeros(size)
    for _ in range(count):
        yield middle + 0.1 * torch.randn(size)


def put_on(net, plan):
    done = 0
    for weight in net.parameters():
        weight.data, done = plan[done : done + weight.numel()].reshape(weight.shape), done + weight.numel()  # ROOT


@torch.no_grad()
def trial(net, rows):
    return net(rows).sum()  # RAISE


net = nn.Linear(4, 2).to("cuda")
rows = torch.ones(3, 4).to("cuda")
trial(net, rows)
for plan in draw(10, 2):
    put_on(net, plan)  # ALSO
    trial(net, rows)
