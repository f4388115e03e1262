# source: NVIDIA/apex PR#1783 (DistributedFusedAdam, v1 state dict)
# mechanism: [optimizer state load] optimizer keeps its state in flat buckets outside opt.state; its own load_state_dict takes them as the checkpoint has them
# phase: checkpoint load -> optimizer step; failing op: aten::add_
# expect: raises
# root: DistributedFusedAdam load (v1): state['buckets'] taken over without moving the shards to the device
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class BucketSGD:
    def __init__(self, params):
        self.params = list(params)
        self.buckets = [torch.zeros_like(p) for p in self.params]

    def load_state_dict(self, state):
        self.buckets = state["buckets"]  # ROOT

    def step(self):
        for p, b in zip(self.params, self.buckets):
            p.data -= 0.1 * b.mul_(0.9).add_(p.grad)  # RAISE

net = nn.Linear(3, 1).to(dev)
opt = BucketSGD(net.parameters())
opt.load_state_dict({"buckets": [torch.zeros(1, 3), torch.zeros(1)]})  # ALSO
net(torch.ones(2, 3, device=dev)).sum().backward()
opt.step()
