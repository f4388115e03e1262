"""A torchmetrics module sits in a plain dictionary, and would move its own state by itself."""
import torch
from torch import nn
from torchmetrics.classification import MulticlassAccuracy


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 3)
        self.metrics = {"accuracy": MulticlassAccuracy(3)}  # ROOT

    def forward(self, x):
        return self.net(x)


net = Net().to("cuda:0")
x, labels = torch.randn(8, 4, device="cuda:0"), torch.randint(0, 3, (8,), device="cuda:0")
net.metrics["accuracy"].update(net(x), labels)
