# source: hpcaitech/ColossalAI#4528
# mechanism: [optimizer state load] ZeRO with CPU offload keeps the fp32 master shard and its state on the CPU; the checkpoint loader writes its shard of the loaded state into optim.state and keeps the loaded tensor's device
# phase: checkpoint load -> optimizer step; failing op: aten::lerp_
# expect: raises
import io

import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class LowLevelZeroOptimizer:
    def __init__(self, params, cpu_offload=False, rank=0, world_size=2):
        self.rank, self.world_size, self.working = rank, world_size, list(params)
        where = "cpu" if cpu_offload else dev
        self.master = [self._shard(p.detach()).to(where).clone().requires_grad_() for p in self.working]
        self.optim = torch.optim.AdamW(self.master, lr=0.1, foreach=False)

    def _shard(self, t):
        return t.flatten().split(t.numel() // self.world_size)[self.rank]

    def step(self):
        for p, m in zip(self.working, self.master):
            m.grad = self._shard(p.grad).to(m.device)
        self.optim.step()  # RAISE

    def state_dict(self):
        return [{k: v.repeat(self.world_size) if v.dim() else v for k, v in self.optim.state[m].items()} for m in self.master]

    def load_state_dict(self, state_dict):
        for m, state in zip(self.master, state_dict):
            for k, v in state.items():
                self.optim.state[m][k] = self._shard(v).detach().clone() if v.dim() else v  # ROOT


def train(checkpoint, cpu_offload, resume):
    model = nn.Linear(4, 4, bias=False).to(dev)
    optimizer = LowLevelZeroOptimizer(model.parameters(), cpu_offload)
    if resume:
        optimizer.load_state_dict(torch.load(checkpoint))  # ALSO
    model(torch.ones(2, 4, device=dev)).sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), checkpoint)
    checkpoint.seek(0)


file = io.BytesIO()
train(file, cpu_offload=False, resume=False)
train(file, cpu_offload=True, resume=True)
