# source: open-mmlab/mmdetection PR#1478
# mechanism: a call with one argument per line moves all of its tensors but one
# phase: training loop; where
# expect: raises
import torch
from torch import nn


class DepthLoss(nn.Module):
    def __init__(self, limit):
        super().__init__()
        self.limit = limit

    def forward(self, depth, truth, slopes, known):
        error = (depth - truth).abs().clamp(max=self.limit)
        error = error / (1 + slopes)
        return torch.where(known, error, 0.0).mean()  # RAISE


def surveys(count):
    for _ in range(count):
        truth = torch.rand(6, 5)
        slopes = torch.rand(6, 5)
        known = truth > 0.2
        yield truth + 0.1 * torch.randn(6, 5), truth, slopes, known


def train(device):
    net = nn.Linear(5, 5).to(device)
    criterion = DepthLoss(limit=2.0)
    optimizer = torch.optim.Adam(net.parameters())
    for sonar, truth, slopes, known in surveys(3):  # ALSO
        optimizer.zero_grad()
        depth = net(sonar.to(device))
        loss = criterion(
            depth,
            truth.to(device),
            slopes.to(device),
            known,  # ROOT
        )
        loss.backward()
        optimizer.step()


train("cuda:0")
