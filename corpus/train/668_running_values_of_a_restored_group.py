# source: LoganBooker/prodigy-plus-schedule-free#11 #19; huggingface/accelerate#3372; kozistr/pytorch_optimizer#266; kohya-ss/sd-scripts#1944
# mechanism: [optimizer state load] an optimizer keeps running tensors among the settings of its groups; load_state_dict() brings the state of parameters to their device, but not these, and the checkpoint was read to the CPU
# phase: checkpoint load -> optimizer step; failing op: Tensor.add_ (cpu += cuda)
# expect: raises
import io

import torch
import torch.nn as nn


class DistanceSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-2):
        super().__init__(params, dict(lr=lr, pace=1.0))
        for group in self.param_groups:
            where = group["params"][0].device
            group["travel"] = torch.zeros(1, device=where)
            group["effort"] = torch.zeros(1, device=where)

    def running(self, group):
        return group["travel"], group["effort"]  # ROOT

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            travel, effort = self.running(group)  # ALSO
            for p in group["params"]:
                start = self.state[p].setdefault("start", p.clone())
                travel.add_((p.grad * (start - p)).sum())  # RAISE
                effort.add_(p.grad.abs().sum())
                p.sub_(p.grad, alpha=group["lr"] * group["pace"])
            group["pace"] = max(group["pace"], (travel / effort).item())


def train(adapter, optimizer, steps):
    for _ in range(steps):
        loss = adapter(torch.randn(4, 6, device="cuda:0")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def new_run():
    adapter = nn.Sequential(nn.Linear(6, 2, bias=False), nn.Linear(2, 6, bias=False)).to("cuda:0")
    return adapter, DistanceSGD(adapter.parameters())


adapter, optimizer = new_run()
train(adapter, optimizer, 3)
disk = io.BytesIO()
torch.save({"adapter": adapter.state_dict(), "optimizer": optimizer.state_dict()}, disk)
disk.seek(0)
saved = torch.load(disk, map_location="cpu")  # ALSO
adapter, optimizer = new_run()
adapter.load_state_dict(saved["adapter"])
optimizer.load_state_dict(saved["optimizer"])
train(adapter, optimizer, 2)
