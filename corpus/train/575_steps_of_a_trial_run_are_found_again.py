# source: own
# mechanism: relative distances are kept by length; a trial run on the CPU has made the first entry, computed from the model's own weights
# phase: forward after the move; failing op: aten::add
# expect: raises
import torch
from torch import nn


class Distances:
    def __init__(self):
        self.kept = {}

    def of(self, x, scale):
        if x.shape[1] not in self.kept:  # ALSO
            steps = x.new_tensor([[float(i - j) for i in range(x.shape[1])] for j in range(x.shape[1])])
            self.kept[x.shape[1]] = steps.abs() * scale.detach()  # ROOT
        return self.kept[x.shape[1]]  # ALSO


class Mixer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(0.5))
        self.query, self.value = nn.Linear(dim, dim), nn.Linear(dim, dim)
        self.distances = Distances()

    def weights(self, scores, bias):
        return (scores - bias).softmax(-1)  # RAISE

    def forward(self, x):
        return self.weights(self.query(x) @ x.mT, self.distances.of(x, self.scale)) @ self.value(x)


net = Mixer(4)
with torch.no_grad():
    print("output:", tuple(net(torch.zeros(1, 3, 4)).shape))
net.to("cuda:0")  # ALSO
net(torch.randn(2, 3, 4, device="cuda:0")).sum().backward()
