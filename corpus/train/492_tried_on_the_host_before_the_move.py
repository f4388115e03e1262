# source: pytorch/pytorch#2830 and its kin: an optimizer that has made its state before its model is moved
# mechanism: one step on the CPU, to see that all fits, makes the averages there; then the model is moved in place
# phase: first step on the GPU; failing op: aten::lerp_.Scalar
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F


def step(net, optimizer, rows, wanted):
    optimizer.zero_grad()
    F.mse_loss(net(rows), wanted).backward()
    optimizer.step()  # RAISE


def train(device, batches=3):
    net = nn.Linear(3, 2)
    optimizer = torch.optim.Adam(net.parameters(), foreach=False)
    step(net, optimizer, torch.randn(4, 3), torch.randn(4, 2))  # ALSO
    net.to(device)  # ROOT
    for _ in range(batches):
        step(net, optimizer, torch.randn(4, 3, device=device), torch.randn(4, 2, device=device))


train(torch.device("cuda", 0))
