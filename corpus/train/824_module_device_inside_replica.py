# source: Lightning-AI/pytorch-lightning#6413 #6563, fix PR#6414
# mechanism: [model-parallel hook] module remembers its device when it is moved; DataParallel's replica carries the remembered value along, so on the second GPU self.device still names the first
# phase: forward of a replica; failing op: aten::add (cuda:1 vs cuda:0)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class DeviceModule(nn.Module):
    def __init__(self):
        super().__init__()
        self._device = torch.device('cpu')

    @property
    def device(self):
        return self._device

    def to(self, where):
        self._device = where
        return super().to(where)

class Denoiser(DeviceModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x):
        noise = torch.randn(x.shape, device=self.device)  # ROOT
        return F.mse_loss(self.net(x + noise), x)  # RAISE

model = Denoiser().to(dev)
replicas = nn.parallel.replicate(model, [0, 1])
chunks = torch.randn(6, 4, device=dev).chunk(2)
losses = [m(c.to(m.net.weight.device)) for m, c in zip(replicas, chunks)]
