# source: huggingface/diffusers PR#11804 (issue #11791)
# mechanism: [model-parallel hook] the offloading group is the list of parameters at the time the hooks are applied; an adapter injected later is not in it
# phase: forward; failing op: aten::linear / addmm
# expect: raises
# root: load_lora_weights: adapter layers injected without re-applying group offloading
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Proj(nn.Linear):
    def forward(self, x):
        return super().forward(x) + sum(adapter(x) for adapter in self.children())  # RAISE

def apply_group_offloading(m):
    group = list(m.parameters())  # ALSO
    def onload(mod, args):
        for p in group:  # ALSO
            p.data = p.data.to(dev)
    m.register_forward_pre_hook(onload)

m = Proj(3, 3)
apply_group_offloading(m)  # ALSO
m.lora = nn.Linear(3, 3, bias=False)  # ROOT
m(torch.ones(2, 3, device=dev))
