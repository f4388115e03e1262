# source: ostris/ai-toolkit#1031 (split_model_over_gpus + LoRA; patch: LoRA modules follow their host once in __init__)
# mechanism: [model-parallel hook] blocks are spread over two GPUs first, then all adapters are created on the default one and patched into the blocks' forward
# phase: forward; failing op: aten::linear / addmm (mat2 cuda:0, input cuda:1)
# expect: raises
# needs: 2 GPUs
# root: LoRASpecialNetwork.__init__: LoRA modules stay on cuda:0 instead of the device of the module they wrap
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
class LoRA(nn.Module):
    def __init__(self, org):
        super().__init__()
        self.down, self.up = nn.Linear(3, 1), nn.Linear(1, 3)
        self.org_forward, org.forward = org.forward, self.forward

    def forward(self, x):
        return self.org_forward(x) + self.up(self.down(x))  # RAISE

blocks = [nn.Linear(3, 3).to(d) for d in (dev, d1)]
network = nn.ModuleList(LoRA(b) for b in blocks).to(dev)  # ROOT
x = torch.ones(2, 3)
for b in blocks:
    x = b(x.to(b.weight.device))
