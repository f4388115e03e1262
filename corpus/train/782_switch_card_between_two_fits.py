# source: Aifred-Health/VulcanAI#86 (see also the review of PR#78; pytorch/pytorch#1442)
# mechanism: [optimizer state load] nothing is loaded: the network's device setter moves the parameters between two fits, the moments of the optimizer kept from the first fit stay on the old card
# phase: second fit -> optimizer step; failing op: aten::lerp_ (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Network(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.body, self.optim = nn.Linear(3, 1), None
        self.device = device

    @property
    def device(self):
        return self.body.weight.device

    @device.setter
    def device(self, device):
        self.to(device)  # ROOT

    def fit(self, x, y):
        if self.optim is None:
            self.optim = torch.optim.Adam(self.parameters(), foreach=False)
        self.optim.zero_grad()
        F.mse_loss(self.body(x.to(self.device)), y.to(self.device)).backward()
        self.optim.step()  # RAISE

net = Network(dev)
net.fit(torch.randn(8, 3), torch.randn(8, 1))
net.device = d1
net.fit(torch.randn(8, 3), torch.randn(8, 1))
