# source: none; an operator writes into the copy by `out=`
# mechanism: a slow copy of a model is kept on a device that its constructor is told, and its update brings nothing there
# phase: update of the copy; failing op: aten::lerp
# expect: raises
import copy

import torch
from torch import nn


class Slow:
    def __init__(self, net, place):
        self.net = copy.deepcopy(net).to(place)

    @torch.no_grad()
    def follow(self, net):
        for slow, fast in zip(self.net.parameters(), net.parameters()):
            new = fast.detach()  # ROOT
            torch.add(slow, new, alpha=0.5, out=slow.data)  # RAISE  # ALSO


net = nn.Linear(3, 2).cuda()
slow = Slow(net, torch.device("cpu"))
net(torch.ones(1, 3).cuda()).sum().backward()
slow.follow(net)
