# source: pytorch/pytorch#30324
# mechanism: [module list not registered] forward path is a function kept as an attribute that closes over self; a replica copies the function as it is, with the original's layers in it
# phase: forward on the second replica; failing op: aten::addmm (cuda:1 input, cuda:0 weight)
# expect: raises
# needs: 2 GPUs
import copy
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)
d1 = torch.device("cuda", 1)


class Classifier(nn.Module):
    def __init__(self, dim, n, deep=True):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(dim, dim), nn.Linear(dim, n)
        self.choose_path(deep)

    def choose_path(self, deep):
        def shallow(x):
            return self.fc2(x)

        def full(x):
            return self.fc2(self.fc1(x).relu())  # RAISE
        self.fc_forward = full if deep else shallow  # ROOT

    def forward(self, x):
        return self.fc_forward(x)


def data_parallel(module, batch, devices):
    replicas = [module] + [copy.deepcopy(module).to(d) for d in devices[1:]]
    chunks = [c.to(d) for c, d in zip(batch.chunk(len(devices)), devices)]
    return torch.cat([r(c).to(devices[0]) for r, c in zip(replicas, chunks)])


model = Classifier(5, 2).to(dev)
data_parallel(model, torch.randn(4, 5), [dev, d1])
