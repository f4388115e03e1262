# source: clean control, must not be reported
# mechanism: none; Adam's step counter is a CPU scalar beside CUDA moments (clipping, stepping, scheduling), load_state_dict places a CPU checkpoint itself, the shadow copy is taken after the move
# phase: n/a
# expect: clean
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


def train(net, opt, sched):
    opt.zero_grad()
    F.mse_loss(net(torch.ones(4, 3, device=dev)), torch.zeros(4, 1, device=dev)).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    opt.step()
    sched.step()

net = nn.Linear(3, 1).to(dev)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
train(net, opt, sched)
saved = {k: {n: v.cpu() for n, v in s.items()} for k, s in opt.state_dict()["state"].items()}
net2 = nn.Linear(3, 1).to(dev)
net2.load_state_dict({k: v.cpu() for k, v in net.state_dict().items()})
opt2 = torch.optim.Adam(net2.parameters(), lr=0.01)
opt2.load_state_dict({"state": saved, "param_groups": opt.state_dict()["param_groups"]})
train(net2, opt2, torch.optim.lr_scheduler.StepLR(opt2, 1))
shadow = [p.detach().clone() for p in net2.parameters()]
for s, p in zip(shadow, net2.parameters()):
    s.lerp_(p.detach(), 0.01)
