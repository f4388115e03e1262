# source: a variation of 310: a module, and trace_module()
# mechanism: a module is traced by an imported trace_module() with an example on the CPU, and keeps making its positions there
# phase: inference; failing op: aten::mul
# expect: raises
import torch
from torch import nn
from torch.jit import trace_module

dev = torch.device("cuda", 0)


class Decay(nn.Module):
    def forward(self, notes):
        age = torch.arange(notes.shape[1], device=notes.device) * 1.0
        return notes * torch.exp(-age)[None, :, None]


def export(decay):
    example = torch.zeros(1, 5, 3)  # ALSO
    return trace_module(  # ROOT
        decay.to(dev), {"forward": example}, check_trace=False  # ALSO
    )


class Listener(nn.Module):
    def __init__(self):
        super().__init__()
        self.decay = export(Decay())
        self.ear = nn.Linear(3, 2)

    def forward(self, notes):
        faded = self.decay(notes)  # RAISE
        return self.ear(faded)


listener = Listener().to(dev)
listener(torch.randn(2, 5, 3, device=dev))
