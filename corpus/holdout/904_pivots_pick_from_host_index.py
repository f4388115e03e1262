# source: ion-g-ion/torchTT PR#36 (dmrg_cross failing with a CUDA oracle: unravel_index receives CUDA tensors, the index bookkeeping is on the CPU)
# mechanism: [index tensor] pivots found on the GPU are unravelled there and then select rows of index sets kept on the host
# phase: interpolation sweep; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Cross:
    def __init__(self, oracle, shape):
        self.oracle, self.shape = oracle, shape
        self.left = torch.zeros(1, 0, dtype=torch.long)
        self.history = []

    def sweep(self, k, rank):
        rows = torch.arange(self.shape[k]).repeat(len(self.left))
        cand = torch.cat([self.left.repeat_interleave(self.shape[k], 0), rows[:, None]], 1)
        pivots = self.pivots(self.oracle(cand.to(dev)).view(len(self.left), self.shape[k]), rank)
        self.extend(*pivots)  # ALSO

    def pivots(self, values, rank):
        best = values.abs().flatten().topk(rank).indices  # ALSO
        return torch.unravel_index(best, values.shape)  # ROOT

    def extend(self, i, j):
        old = self.left[i]  # RAISE  # ALSO
        self.left = torch.cat([old, j.to(old.device)[:, None]], 1)
        self.history.append(len(self.left))

cross = Cross(lambda ix: (ix.float() + 1).prod(1), [4, 3])
for k in range(2):
    cross.sweep(k, rank=2)
