# source: none; weights are lent by `.data`, and put back by `.data` from where the host kept the former ones
# mechanism: a trial puts other weights into a model, whose own wait in a case on the host and come back as they are
# phase: forward after the trial; failing op: aten::addmm
# expect: raises
import torch
from torch import nn


class Trial:
    def __init__(self, net):
        self.net = net
        self.case = {}

    def __enter__(self):
        for name, weight in self.net.named_parameters():
            self.case[name] = weight.data.cpu()
            weight.data = weight.data.clone().neg_()

    def __exit__(self, *_):
        for name, weight in self.net.named_parameters():
            weight.data = self.case.pop(name)  # ROOT


def look(net, rows):
    return net(rows).sum()  # RAISE


net = nn.Linear(3, 2).cuda()
rows = torch.ones(2, 3).cuda()
with Trial(net):
    look(net, rows)
look(net, rows)
