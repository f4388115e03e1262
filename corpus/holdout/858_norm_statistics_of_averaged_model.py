# source: hoya012/swa-tutorials-pytorch#2 (torch.optim.swa_utils.update_bn)
# mechanism: [EMA / shadow copy] averaged copy of the model lives on the GPU like the model; its batch-norm statistics are recomputed from the loader, whose batches only the training loop moves
# phase: end of training; failing op: aten::linear / addmm (cuda weights, cpu batch)
# expect: raises
import torch
import torch.nn as nn
from torch.optim.swa_utils import AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset

dev = torch.device("cuda", 0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.bn, self.head = nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 2)

    def forward(self, x):
        h = self.fc(x)  # RAISE
        return self.head(self.bn(h).relu())

class Trainer:
    def __init__(self, net, loader):
        self.net, self.loader = net.to(dev), loader
        self.swa = AveragedModel(self.net)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def fit(self, epochs):
        for _ in range(epochs):
            for x, y in self.loader:
                loss = nn.functional.cross_entropy(self.net(x.to(dev)), y.to(dev))
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.swa.update_parameters(self.net)
        return self.finish()

    def finish(self):
        update_bn(self.loader, self.swa)  # ROOT
        return self.swa

data = TensorDataset(torch.randn(12, 4), torch.randint(0, 2, (12,)))
Trainer(Net(), DataLoader(data, batch_size=6)).fit(2)
