# source: https://github.com/pytorch/pytorch/issues/114691
# mechanism: the GPU is made the default of the whole program, and a helper wraps an array, which stays on the host
# phase: loss; failing op: aten::nll_loss_forward
# expect: raises
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F


def rarity(labels, classes):
    counts = np.bincount(labels, minlength=classes)
    share = counts.sum() / np.maximum(counts, 1) / classes
    return torch.from_numpy(share.astype("float32"))  # ROOT


def penalty(guess, wanted, weights):
    return F.cross_entropy(guess, wanted, weight=weights)  # RAISE  # ALSO


def main():
    torch.manual_seed(0)
    torch.set_default_device("cuda")
    labels = np.array([0, 1, 1, 2, 1, 0])
    weights = rarity(labels, 3)  # ALSO
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    rows, wanted = torch.randn(6, 4), torch.tensor(labels)
    loss = penalty(net(rows), wanted, weights)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


main()
