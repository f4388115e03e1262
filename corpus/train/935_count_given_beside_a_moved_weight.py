# source: pytorch/pytorch PR#35032 (comment of 2020-03-28 on n_averaged; as merged: avg_fn(..., self.n_averaged.to(device)))
# mechanism: [EMA / shadow copy] averaged weights are kept on CPU and each parameter is brought to them, the number of averaged models is not
# phase: after optimizer step; failing op: aten::div (cpu x cuda 0-d)
# expect: raises
# root: AveragedModel.update_parameters: n_averaged passed to avg_fn without .to(device)
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def running_mean(avg, new, n):
    return avg + (new - avg) / (n + 1)  # RAISE  # ALSO

net = nn.Linear(3, 2).to(dev)
averaged = [p.detach().cpu().clone() for p in net.parameters()]
n_averaged = torch.ones((), device=dev)  # ALSO
for a, p in zip(averaged, net.parameters()):
    a.copy_(running_mean(a, p.detach().to(a.device), n_averaged))  # ROOT
