# source: NVIDIA-NeMo/Speech PR#5668 (fix EMA restart: we shouldn't override, or even store, the device)
# mechanism: [EMA / shadow copy] the EMA saves its device with its state; a process on another GPU that restores the state takes that device over
# phase: first step after restart; failing op: aten::add_ (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
# root: EMAOptimizer.load_state_dict: self.device = state_dict['device']
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
class EMA:
    def __init__(self, net, device, decay=0.99):
        self.net, self.device, self.decay = net, device, decay
        self.avg = [p.detach().clone().to(device) for p in net.parameters()]

    @torch.no_grad()
    def update(self):
        for a, p in zip(self.avg, self.net.parameters()):
            a.mul_(self.decay).add_(p, alpha=1 - self.decay)  # RAISE

    def state_dict(self):
        return {"avg": self.avg, "decay": self.decay, "device": self.device}

    def load_state_dict(self, state):
        self.decay = state["decay"]
        self.device = state["device"]  # ROOT
        self.avg = [a.clone().to(self.device) for a in state["avg"]]  # ALSO

saved = None
for local in (dev, d1):
    net = nn.Linear(3, 1).to(local)
    ema = EMA(net, local)
    if saved:
        ema.load_state_dict(saved)
    ema.update()
    saved = ema.state_dict()
