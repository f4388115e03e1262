# source: sgl-project/sglang PR#33864 (--text-encoder-cpu-offload: parameter device names the storage side, not the compute side)
# mechanism: [model-parallel hook] encoder's device property reads its first parameter, which is parked on the CPU until the hook brings it; inputs go to the wrong side
# phase: text encoding; failing op: aten::index_select / embedding (argument index)
# expect: raises
# root: MiniMaxH3Qwen3VLEncoder.device: return next(self.parameters()).device
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    @property
    def device(self):
        return next(self.parameters()).device  # ROOT

    def encode(self, ids):
        return self.embed(ids.to(self.device))  # RAISE

enc = Encoder()
enc.embed.register_forward_pre_hook(lambda mod, args: mod.to(dev) and None)  # ALSO
enc.encode(torch.tensor([[1, 2, 3]]))
