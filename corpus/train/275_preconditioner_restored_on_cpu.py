# source: facebookresearch/optimizers#3
# mechanism: an optimizer's state holds objects with tensors of their own; load_state_dict() moves tensors only
# phase: optimizer step; aten::lerp_
# expect: raises
import io

import torch

dev = torch.device("cuda", 0)


class Preconditioner:
    def __init__(self, p):
        self.factor = torch.eye(p.shape[0], device=p.device)

    def update(self, grad):
        self.factor.lerp_(grad @ grad.T, 0.1)  # RAISE  # ALSO

    def apply(self, grad):
        return torch.linalg.solve(self.factor + 0.1 * torch.eye(len(grad), device=grad.device), grad)


class Shampoo(torch.optim.Optimizer):
    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                grad = p.grad if p.dim() == 2 else p.grad.unsqueeze(1)
                state = self.state[p]
                if not state:
                    state["preconditioner"] = Preconditioner(grad)
                state["preconditioner"].update(grad)
                p.sub_(state["preconditioner"].apply(grad).view_as(p), alpha=group["lr"])


def train(model, optimizer, steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.randn(6, 4, device=dev)).pow(2).mean().backward()
        optimizer.step()


model = torch.nn.Linear(4, 3).to(dev)
optimizer = Shampoo(model.parameters(), {"lr": 0.1})
train(model, optimizer, steps=2)
file = io.BytesIO()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
file.seek(0)
checkpoint = torch.load(file, map_location="cpu", weights_only=False)  # ROOT
model.load_state_dict(checkpoint["model"])
optimizer.load_state_dict(checkpoint["optimizer"])
train(model, optimizer, steps=1)
