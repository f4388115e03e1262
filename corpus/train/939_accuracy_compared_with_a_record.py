# source: allenhaozhu/SSGC PR#7 ('add .item() on validation acc and loss', solves the cuda:0 and cpu error)
# mechanism: [zero-dim scalar] validation accuracy returned as a 0-d CUDA tensor; storing it into a CPU history copies silently, comparing it with the history raises from the second epoch on
# phase: evaluation; failing op: aten::gt (cuda 0-d vs cpu 1-D)
# expect: raises
# root: accuracy helper: .mean() without .item()
import torch

dev = torch.device('cuda', 0)


def accuracy(net, x, y):
    return (net(x).argmax(1) == y).float().mean()  # ROOT

net = torch.nn.Linear(3, 2).to(dev)
x, y = torch.randn(8, 3, device=dev), torch.zeros(8, dtype=torch.long, device=dev)
history = torch.zeros(3)  # ALSO
for epoch in range(3):
    acc = accuracy(net, x, y)  # ALSO
    if epoch == 0 or bool((acc > history[:epoch]).all()):  # RAISE  # ALSO
        best = epoch
    history[epoch] = acc
