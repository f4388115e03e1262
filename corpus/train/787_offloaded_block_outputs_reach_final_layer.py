# source: kohya-ss/musubi-tuner PR#1038
# mechanism: [model-parallel hook] wrapper around each checkpointed block parks its output on the CPU; the next wrapped block brings it back, the final layer, which is not wrapped, does not
# phase: forward; failing op: aten::native_layer_norm
# expect: raises
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint

dev = torch.device("cuda", 0)


def cpu_offloading(fn, device):
    def run(x, shift):
        return fn(x.to(device), shift.to(device)).to("cpu")  # ROOT
    return run

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, shift):
        return x + self.fc(x + shift).relu()

class Transformer(nn.Module):
    def __init__(self, activation_cpu_offloading=False):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(2))
        self.final = nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 2))
        self.offloading = activation_cpu_offloading

    def forward(self, x, shift):
        for block in self.blocks:
            run = cpu_offloading(block, self.blocks[0].fc.weight.device) if self.offloading else block
            x = checkpoint(run, x, shift, use_reentrant=False)
        return self.final(x)  # RAISE  # ALSO

Transformer(activation_cpu_offloading=True).to(dev)(torch.randn(3, 4, device=dev), torch.ones(4, device=dev))
