# source: https://github.com/WongKinYiu/ScaledYOLOv4/issues/218
# mechanism: a script names the second GPU once and moves its data there, but its model to the current one
# phase: forward; failing op: aten::addmm
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

gpu = torch.device("cuda:1")


class Finder(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.stem = nn.Linear(8, channels)
        self.head = nn.Linear(channels, 5)

    def forward(self, pictures):
        return self.head(self.stem(pictures).relu())  # RAISE


def train(pictures, targets, rounds):
    finder = Finder(2)  # ALSO
    finder.cuda()  # ROOT
    optimizer = torch.optim.SGD(finder.parameters(), lr=0.1)
    pictures, targets = pictures.to(gpu), targets.to(gpu)
    for _ in range(rounds):
        loss = nn.functional.l1_loss(finder(pictures), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(torch.rand(2, 8, 8), torch.rand(2, 8, 5), 2)
