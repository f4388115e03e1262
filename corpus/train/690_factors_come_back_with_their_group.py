# source: f-dangel/sirfshampoo#34, PR#35
# mechanism: [optimizer state load] a second-order optimizer keeps its factors as objects in the parameter group, where load_state_dict() does not look for tensors; the checkpoint was loaded to the CPU
# phase: checkpoint load -> optimizer step; failing op: aten::add
# expect: raises
import io

import torch
import torch.nn as nn


class Factor:
    def __init__(self, mat):
        self.mat = mat

    def update(self, gram, beta):
        self.mat = beta * self.mat + (1 - beta) * gram  # RAISE

    def root_inverse(self, damping):
        vals, vecs = torch.linalg.eigh(self.mat)
        return (vecs * (vals.clamp_min(0) + damping).pow(-0.25)) @ vecs.T


class Kron(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, beta=0.9, damping=1e-3):
        super().__init__(params, dict(lr=lr, beta=beta, damping=damping))
        for group in self.param_groups:
            group["left"] = [Factor(torch.eye(p.shape[0], device=p.device)) for p in group["params"]]
        self.loads = 0

    def load_state_dict(self, state):
        super().load_state_dict(state)  # ROOT
        self.loads += 1

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p, left in zip(group["params"], group["left"]):
                gram = p.grad @ p.grad.T
                left.update(gram / p.shape[1], group["beta"])
                p.sub_(left.root_inverse(group["damping"]) @ p.grad, alpha=group["lr"])


def one_epoch(net, opt, x, y):
    for xb, yb in zip(x.split(8), y.split(8)):
        opt.zero_grad()
        nn.functional.mse_loss(net(xb), yb).backward()
        opt.step()


device = torch.device("cuda:0")
x, y = torch.randn(16, 5, device=device), torch.randn(16, 3, device=device)
net = nn.Linear(5, 3, bias=False).to(device)
opt = Kron(net.parameters())
one_epoch(net, opt, x, y)

file = io.BytesIO()
torch.save({"net": net.state_dict(), "opt": opt.state_dict()}, file)
file.seek(0)
saved = torch.load(file, map_location="cpu", weights_only=False)  # ALSO
net.load_state_dict(saved["net"])
opt.load_state_dict(saved["opt"])
one_epoch(net, opt, x, y)
