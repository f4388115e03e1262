# source: pytorch/torchtitan PR#1046
# mechanism: [expert placement] number of tokens that the local experts receive is summed on the GPU and then used as a size; the host waits for it in every MoE layer
# phase: forward, token dispatch; failing op: aten::new_zeros with a CUDA 0-dim size (hidden aten::item)
# expect: silent
# kinds: implicit-sync
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class LocalExperts(nn.Module):
    def __init__(self, dim, total, owned):
        super().__init__()
        self.total, self.owned = total, owned
        self.w = nn.Parameter(torch.randn(dim, dim))

    def dispatch(self, x, ids):
        counts = torch.bincount(ids, minlength=self.total)
        received = counts[:self.owned].sum()  # ROOT
        order = ids.argsort()
        tokens = x.new_zeros(received, x.shape[1])  # RAISE
        tokens.copy_(x[order[:tokens.shape[0]]])
        return tokens, order

    def forward(self, x, ids):
        tokens, order = self.dispatch(x, ids)
        out = torch.zeros_like(x)
        return out.index_add(0, order[:tokens.shape[0]], tokens @ self.w)


layer = LocalExperts(4, 6, 3).to(dev)
layer(torch.randn(10, 4, device=dev), torch.arange(10, device=dev) % 6)
