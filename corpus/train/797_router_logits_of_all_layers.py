# source: huggingface/transformers PR#27948
# mechanism: [expert placement] every MoE layer returns its router logits from the GPU it was placed on; the load-balancing loss joins them
# phase: auxiliary loss; failing op: aten::cat (cuda:0 and cuda:1)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)
d1 = torch.device("cuda", 1)


class SparseBlock(nn.Module):
    def __init__(self, dim, n):
        super().__init__()
        self.gate = nn.Linear(dim, n, bias=False)
        self.experts = nn.ModuleList(nn.Linear(dim, dim) for _ in range(n))

    def forward(self, x):
        x = x.to(self.gate.weight.device)
        logits = self.gate(x)
        top = logits.softmax(-1)
        out = sum(top[..., i:i + 1] * e(x) for i, e in enumerate(self.experts))
        return x + out, logits


def load_balancing_loss(gate_logits, n, k):
    flat = [g.reshape(-1, n) for g in gate_logits]  # ROOT
    probs = torch.cat(flat).softmax(-1)  # RAISE  # ALSO
    chosen = F.one_hot(probs.topk(k, -1).indices, n).float().mean(0)
    return n * (chosen * probs.mean(0)).sum()


layers = [SparseBlock(4, 3).to(dev), SparseBlock(4, 3).to(d1)]
h, collected = torch.randn(2, 5, 4, device=dev), ()
for layer in layers:
    h, logits = layer(h)
    collected += (logits,)  # ALSO
loss = h.sum() + 0.02 * load_balancing_loss(collected, 3, 2)
