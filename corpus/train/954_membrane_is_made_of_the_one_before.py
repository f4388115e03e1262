# source: jeshraghian/snntorch PR#317, fixes #316 (also #225, #274: 'mem' is not moved; register_buffer("mem", mem, False) again)
# mechanism: [plain attribute tensor] a spiking neuron keeps its membrane potential as an attribute over a move of the model
# phase: forward after moving; failing op: aten::add
# expect: raises
# root: leaky.py:_init_mem: self.mem is not a buffer
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class Leaky(nn.Module):
    def __init__(self, beta, threshold=1.0):
        super().__init__()
        self.register_buffer("beta", torch.as_tensor(beta))
        self.threshold = threshold
        self._init_mem()

    def _init_mem(self):
        self.mem = torch.zeros(0)                      # ROOT

    def reset_mem(self):
        self.mem = torch.zeros_like(self.mem, device=self.mem.device)  # ALSO
        return self.mem

    def forward(self, x):
        if self.mem.shape != x.shape:
            self.mem = torch.zeros_like(x, device=self.mem.device)
        self.mem = self.beta * self.mem + x            # RAISE
        spk = (self.mem > self.threshold).float()
        self.mem = self.mem - spk * self.threshold
        return spk


class SNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.lif = nn.Linear(4, 3), Leaky(0.9)

    def forward(self, x, steps=3):
        self.lif.reset_mem()
        return torch.stack([self.lif(self.fc(x)) for _ in range(steps)])

with torch.no_grad():
    net = SNN()
    net(torch.ones(2, 4))
    net.to(dev)
    net(torch.ones(2, 4, device=dev))
