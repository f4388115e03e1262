# source: facebookresearch/fairscale PR#46
# mechanism: [optimizer state load] state_dict() pulls everything to the CPU, parameters of the groups included; load_state_dict() installs those host copies as the live param_groups
# phase: checkpoint load -> optimizer step; failing op: aten::add_ (cpu parameter copy, cuda bucket)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def copy_to(value, device):
    if torch.is_tensor(value):
        return value.detach().to(device)
    if isinstance(value, dict):
        return {k: copy_to(v, device) for k, v in value.items()}
    return [copy_to(v, device) for v in value] if isinstance(value, list) else value

class ShardedSGD:
    def __init__(self, params, lr):
        self.param_groups = [{"params": list(params), "lr": lr}]
        self.bucket = torch.zeros(sum(p.numel() for p in self.param_groups[0]["params"]), device=dev)

    def state_dict(self):
        return {"param_groups": copy_to(self.param_groups, torch.device("cpu"))}

    def load_state_dict(self, state):
        self.param_groups = state["param_groups"]  # ROOT

    def step(self, grads):
        torch.cat([g.flatten() for g in grads], out=self.bucket)
        start = 0
        for group in self.param_groups:
            for p in group["params"]:
                part = self.bucket[start:start + p.numel()].view_as(p)
                p.data.add_(part, alpha=-group["lr"])  # RAISE
                start += p.numel()

net = nn.Linear(3, 2).to(dev)
opt = ShardedSGD(net.parameters(), lr=0.1)
opt.step([torch.ones_like(p) for p in net.parameters()])
opt.load_state_dict(opt.state_dict())
opt.step([torch.ones_like(p) for p in net.parameters()])
