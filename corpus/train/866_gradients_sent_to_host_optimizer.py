# source: facebookresearch/fairscale PR#496 (FSDP: fix CPU offload corner case), see also PR#729 (review)
# mechanism: [async copy race] gradient hook copies each gradient into a pinned host buffer with non_blocking; the optimizer on the host steps after backward, with nothing waiting for the copies
# phase: optimizer step (CPU offload); failing op: Tensor.copy_(non_blocking=True) into pinned memory, read by the host
# expect: silent
# kinds: async-race
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class HostSGD:
    def __init__(self, masters, lr):
        self.masters, self.lr = masters, lr

    @torch.no_grad()
    def step(self):
        for m in self.masters:
            m.sub_(m.grad * self.lr)  # RAISE

class OffloadedModel:
    def __init__(self, net):
        self.net, self.masters = net.to(dev), []
        for p in self.net.parameters():
            master = p.detach().cpu()
            master.grad = torch.zeros(p.shape, pin_memory=True)
            self.masters.append(master)
            p.register_post_accumulate_grad_hook(self.sender(master))

    def sender(self, master):
        def hook(p):
            master.grad.copy_(p.grad, non_blocking=True)  # ROOT
        return hook

    @torch.no_grad()
    def refresh(self):
        for p, m in zip(self.net.parameters(), self.masters):
            p.copy_(m)

model = OffloadedModel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1)))
opt = HostSGD(model.masters, lr=0.05)
for _ in range(2):
    model.net(torch.randn(8, 16, device=dev)).square().mean().backward()
    opt.step()
    model.refresh()
    model.net.zero_grad()
