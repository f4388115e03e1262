# source: haoyangzheng-ai/didi-instruct#1
# mechanism: [zero-dim scalar] 0-d CPU running sum takes a 0-d CUDA value in place; the exemption holds for a CPU operand, not for a CPU destination
# phase: eval logging; failing op: Tensor.add_ (cpu 0-d += cuda 0-d)
# expect: raises
# root: metrics.py: self.gen_ppl = NLL() and its states are not moved to the device of the nlls before update()
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class NLL(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean_value", torch.tensor(0.0))  # ROOT

    def update(self, nlls):
        self.mean_value += nlls.sum()  # RAISE  # ALSO

NLL().update(F.cross_entropy(torch.randn(3, 5, device=dev), torch.zeros(3, dtype=torch.long, device=dev), reduction="none"))  # ALSO
