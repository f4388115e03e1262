# source: clean control, must not be reported
# mechanism: none; a model split over two GPUs with explicit moves, labels and loss on the last one, gradients flowing back across the cut
# phase: n/a
# expect: clean
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(4, 4).to(dev), nn.Linear(4, 3).to(d1)

    def forward(self, x):
        h = self.first(x.to(dev))
        skip = h.mean(-1, keepdim=True)
        return self.last(h.to(d1)) + skip.to(d1)

net = Split()
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    opt.zero_grad()
    logits = net(torch.randn(5, 4))
    labels = torch.randint(0, 3, (5,)).to(logits.device)
    penalty = net.first.weight.pow(2).sum().to(d1) + net.last.weight.pow(2).sum()
    (F.cross_entropy(logits, labels) + 0.01 * penalty).backward()
    opt.step()
