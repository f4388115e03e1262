# source: own
# mechanism: a penalty that is no module keeps the costs it is given, by way of its base class, where they are
# phase: loss; failing op: aten::index_select
# expect: raises
import torch
from torch import nn


class Penalty:
    def __init__(self, costs, weight=1.0):
        self.weight = weight
        self.costs = costs  # ROOT


class Confusion(Penalty):
    def __init__(self, *args, mean=True, **options):
        super().__init__(*args, **options)
        self.mean = mean

    def __call__(self, logits, labels):
        rows = torch.index_select(self.costs, 0, labels)  # RAISE  # ALSO
        loss = (rows * logits.softmax(-1)).sum(-1)
        return self.weight * (loss.mean() if self.mean else loss)


def distances(classes):
    costs = torch.empty(classes, classes)
    for row in range(classes):
        costs[row] = torch.tensor([abs(row - other) for other in range(classes)])
    return costs


costs = distances(4)  # ALSO
net, criterion = nn.Linear(3, 4).cuda(), Confusion(costs, weight=0.5)  # ALSO
criterion(net(torch.randn(5, 3, device="cuda")), torch.tensor([0, 1, 2, 3, 0], device="cuda")).backward()
