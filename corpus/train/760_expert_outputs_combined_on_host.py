# source: Oneflow-Inc/models PR#257 (review of SparseDispatcher.combine)
# mechanism: [expert placement] tokens are sent to their experts and come back on CUDA, the buffer in which the dispatcher puts them together is on CPU
# phase: forward, after the experts; failing op: aten::index_add
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Dispatcher:
    def __init__(self, gates):
        self.gates = gates
        self.batch_index, self.expert_index = (gates > 0).nonzero(as_tuple=True)
        order = self.expert_index.argsort(stable=True)
        self.batch_index, self.expert_index = self.batch_index[order], self.expert_index[order]
        self.sizes = (gates > 0).sum(0).tolist()

    def dispatch(self, x):
        return x[self.batch_index].split(self.sizes)

    def combine(self, outs):
        stitched = torch.cat(outs) * self.gates[self.batch_index, self.expert_index, None]
        merged = torch.zeros(self.gates.shape[0], stitched.shape[1], requires_grad=True)  # ROOT
        return merged.index_add(0, self.batch_index, stitched)  # RAISE

gate, experts = nn.Linear(3, 4).to(dev), nn.ModuleList(nn.Linear(3, 3) for _ in range(4)).to(dev)
x = torch.randn(6, 3, device=dev)
top, idx = gate(x).topk(2, dim=1)
d = Dispatcher(torch.zeros(6, 4, device=dev).scatter(1, idx, top.softmax(1)))
d.combine([e(part) for e, part in zip(experts, d.dispatch(x))])
