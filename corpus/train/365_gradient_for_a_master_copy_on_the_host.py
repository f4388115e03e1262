# source: deepspeedai/DeepSpeed#5422, pytorch/pytorch#26791
# mechanism: master weights are kept on the host; the reduced gradient is assigned to them where it was computed
# phase: optimizer; Tensor.grad
# expect: raises
import torch
from torch import nn


class HostOptimizer:
    def __init__(self, parameters, world_size):
        self.parameters, self.world_size = list(parameters), world_size
        self.masters = [nn.Parameter(p.detach().float().cpu()) for p in self.parameters]
        self.inner = torch.optim.AdamW(self.masters, lr=1e-3)

    def reduced(self, parameter):
        gradient = parameter.grad.float()  # ALSO
        return gradient / self.world_size  # ROOT

    def step(self):
        for master, parameter in zip(self.masters, self.parameters):
            master.grad = self.reduced(parameter)  # RAISE  # ALSO
        self.inner.step()


net = nn.Linear(4, 2).to("cuda")
optimizer = HostOptimizer(net.parameters(), world_size=2)
net(torch.randn(3, 4, device="cuda")).square().mean().backward()
optimizer.step()
