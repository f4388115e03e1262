# source: unslothai/unsloth PR#8516
# mechanism: [model-parallel hook] attention mask is cached process-wide by its lengths alone; the layer on the second GPU gets the mask that the first layer had built on its own GPU
# phase: forward; failing op: aten::masked_fill
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
_block_masks = {}
def block_mask(lengths, device):
    key = tuple(lengths)  # ROOT
    if key not in _block_masks:  # ALSO
        seg = torch.cat([torch.full((n,), i, device=device) for i, n in enumerate(lengths)])
        _block_masks[key] = seg[:, None] == seg[None, :]
    return _block_masks[key]  # ALSO

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qk = nn.Linear(4, 4)

    def forward(self, x, lengths):
        scores = self.qk(x) @ x.t()
        blocked = ~block_mask(lengths, x.device)
        return scores.masked_fill(blocked, float("-inf")).softmax(-1) @ x  # RAISE

h = torch.randn(5, 4, device=dev)
for layer in (Layer().to(dev), Layer().to(dev), Layer().to(d1)):
    h = layer(h.to(layer.qk.weight.device), [2, 3])
