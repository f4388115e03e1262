# source: clean control, must not be reported
# mechanism: none; layers on two GPUs with every input, mask and label moved by hand, gradients cross the boundary by themselves
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
        self.embed, self.body, self.head = nn.Embedding(8, 4).to(dev), nn.Linear(4, 4).to(d1), nn.Linear(4, 8).to(dev)
        self.register_buffer("scale", torch.tensor(0.5))   # 0-d, stays on the CPU

    def forward(self, ids, mask):
        x = self.embed(ids) * self.scale
        y = self.body(x.to(d1)).masked_fill(mask.to(d1)[..., None] == 0, 0.0)
        return self.head(x + y.to(dev))                # the residual meets its branch on cuda:0

net = Split()
opt = torch.optim.SGD(net.parameters(), lr=0.1)
ids, mask = torch.tensor([[1, 2, 0]], device=dev), torch.tensor([[1, 1, 0]], device=dev)
labels = ids.masked_fill(mask == 0, -100)
loss = F.cross_entropy(net(ids, mask).flatten(0, 1), labels.flatten())
aux = net.body.weight.pow(2).mean()
(loss + 0.01 * aux.to(dev)).backward()
opt.step()
