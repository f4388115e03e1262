# source: clean control, must not be reported
# mechanism: none; averages and statistics kept on the CPU on purpose, fed by .to('cpu'), copy_ and .item(), and swapped in and out by copy_
# phase: n/a
# expect: clean
import copy
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class CpuAverage:
    def __init__(self, model, decay):
        self.model, self.decay = copy.deepcopy(model).to("cpu"), decay

    @torch.no_grad()
    def update(self, model):
        for s, p in zip(self.model.parameters(), model.parameters()):
            s.lerp_(p.to(s.device), 1 - self.decay)

    @torch.no_grad()
    def swap(self, model):
        for s, p in zip(self.model.parameters(), model.parameters()):
            kept = p.detach().to("cpu", copy=True)
            p.copy_(s)                                 # copies between devices by design
            s.copy_(kept)

net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 1)).to(dev)
ema, history = CpuAverage(net, 0.9), []
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    loss = net(torch.randn(4, 3, device=dev)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    ema.update(net)
    history.append(loss.item())
ema.swap(net)
net(torch.randn(2, 3, device=dev))
ema.swap(net)
