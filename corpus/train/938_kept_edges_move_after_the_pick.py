# source: enoche/MMRec#21 ('removing .to(self.device) in random setting is correct')
# mechanism: [index tensor] edge list stays on the CPU by design; the sampled positions are moved to the GPU one step too early
# phase: graph pruning before an epoch; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
# root: layergcn.py:pre_epoch_processing: torch.tensor(random.sample(...)).to(self.device)
import random

import torch

dev = torch.device('cuda', 0)


class EdgePruner:
    def __init__(self, edges, device):
        self.edges, self.device = edges, device

    def random(self, k):
        return torch.tensor(random.sample(range(self.edges.shape[1]), k)).to(self.device)  # ROOT

    def pre_epoch(self, k):
        kept = self.edges[:, self.random(k)]  # RAISE
        return kept.to(self.device)

EdgePruner(torch.randint(0, 5, (2, 12)), dev).pre_epoch(6)
