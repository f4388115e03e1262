# source: jxbz/nero#1
# mechanism: [optimizer state load] optimizer fills its state from the parameters in __init__; it is built before the net is moved, so the state stays on the CPU
# phase: optimizer step; failing op: aten::add (cpu state x cuda gradient norm)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def neuron_norm(x):
    return x.flatten(1).norm(dim=1, keepdim=True) if x.dim() > 1 else x.abs()

class Nero(torch.optim.Optimizer):
    def __init__(self, params, lr=0.01, beta=0.999):
        super().__init__(params, dict(lr=lr))
        self.beta = beta
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p]["step"] = 0
                self.state[p]["exp_avg_sq"] = torch.zeros_like(neuron_norm(p.detach()))  # ROOT

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state["step"] += 1
                correction = 1 - self.beta ** state["step"]
                state["exp_avg_sq"] = self.beta * state["exp_avg_sq"] + (1 - self.beta) * neuron_norm(p.grad) ** 2  # RAISE
                p -= group["lr"] * p.grad / (state["exp_avg_sq"] / correction).sqrt()

net = nn.Linear(4, 3)
opt = Nero(net.parameters())  # ALSO
net.to(dev)  # ALSO
net(torch.ones(2, 4, device=dev)).sum().backward()
opt.step()
