# source: kozistr/pytorch_optimizer#266 (fix PR#267), huggingface/accelerate#3372
# mechanism: [optimizer state load] a running total lives in param_groups, which load_state_dict does not cast to the parameter's device as it does for state
# phase: checkpoint load -> optimizer step; failing op: Tensor.add_ (cpu 1-D += cuda 0-d)
# expect: raises
import io

import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class AutoStep(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, keep=0.9):
        super().__init__(params, dict(lr=lr, keep=keep))

    @torch.no_grad()
    def step(self):
        head = self.param_groups[0]
        device = head["params"][0].device
        travelled = head.setdefault("travelled", torch.zeros(1, device=device))  # ROOT
        travelled.mul_(head["keep"])
        for group in self.param_groups:
            for p in group["params"]:
                start = self.state[p].setdefault("start", p.clone())
                gain = torch.dot(p.grad.flatten(), (start - p).flatten())
                travelled.add_(gain, alpha=group["lr"])  # RAISE
                p.add_(p.grad, alpha=-group["lr"])


def train(net, opt, steps):
    for _ in range(steps):
        opt.zero_grad()
        net(torch.ones(4, 3, device=dev)).pow(2).mean().backward()
        opt.step()


net = nn.Linear(3, 2).to(dev)
opt = AutoStep(net.parameters())
train(net, opt, 2)
disk = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, disk)

disk.seek(0)
saved = torch.load(disk, map_location="cpu")  # ALSO
net = nn.Linear(3, 2).to(dev)
net.load_state_dict(saved["net"])
opt = AutoStep(net.parameters())
opt.load_state_dict(saved["opt"])
train(net, opt, 1)
