# source: pytorch/pytorch PR#105518 (avoid synchronization when using a scalar tensor as index); item 3 of #108968
# mechanism: [index tensor] number of the best key is a 0-dim CUDA tensor; used as an index by itself it is taken for an integer, so it is read on the host to make a view, once for each query
# phase: forward (memory look-up); failing op: Tensor.__getitem__ with a 0-dim CUDA tensor (hidden aten::item)
# expect: silent
# kinds: implicit-sync
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class MemoryBank(nn.Module):
    def __init__(self, slots, dim):
        super().__init__()
        self.register_buffer("keys", F.normalize(torch.randn(slots, dim), dim=1))
        self.values = nn.Parameter(torch.randn(slots, dim))

    def nearest(self, query):
        similarity = self.keys @ F.normalize(query, dim=0)
        return similarity.argmax()  # ROOT

    def read(self, slot):
        return self.values[slot]  # RAISE

class Reader(nn.Module):
    def __init__(self, dim=8):
        super().__init__()
        self.encode, self.bank = nn.Linear(dim, dim), MemoryBank(6, dim)
        self.out = nn.Linear(2 * dim, 1)

    def forward(self, x):
        outputs = []
        for step in self.encode(x):
            recalled = self.bank.read(self.bank.nearest(step))
            outputs.append(self.out(torch.cat([step, recalled.view(-1)])))
        return torch.stack(outputs)

model = Reader().to(dev)
loss = model(torch.randn(4, 8, device=dev)).pow(2).mean()
loss.backward()
