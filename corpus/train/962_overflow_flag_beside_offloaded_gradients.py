# source: deepspeedai/DeepSpeed PR#5826 ('the tracker is made on the device of the flat gradient buffer: cpu when the optimizer is offloaded')
# mechanism: [offloaded state] a flag for overflow is made on the accelerator, while the flat buffer of gradients lies in host memory when the optimizer is offloaded
# phase: gradient reduction; failing op: aten::logical_or_
# expect: raises
# root: stage3.py:DeepSpeedZeroOptimizer_Stage3.__init__: inf_or_nan_tracker = torch.zeros(1, device=self.device)
import torch

dev = torch.device('cuda', 0)


class Sharded:
    def __init__(self, params, offload):
        self.params = list(params)
        self.offload = offload
        self.overflow = torch.zeros(1, dtype=torch.bool, device=dev)   # ROOT
        numel = sum(p.numel() for p in self.params)
        self.flat = torch.zeros(numel, device="cpu" if offload else dev)

    def partition(self):
        start = 0
        for p in self.params:
            self.flat[start:start + p.numel()].copy_(p.grad.reshape(-1))
            start += p.numel()
        bad = torch.isinf(self.flat).any() | torch.isnan(self.flat).any()
        self.overflow.logical_or_(bad.reshape(1))      # RAISE  # ALSO


net = torch.nn.Linear(4, 2).to(dev)
opt = Sharded(net.parameters(), offload=True)
net(torch.ones(3, 4, device=dev)).sum().backward()
opt.partition()
