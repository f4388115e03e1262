# source: facebookresearch/optimizers#3
# mechanism: the preconditioner objects inside the optimizer state are not tensors, so loading a host checkpoint leaves the factors inside them on the CPU
# expect: raises
import io

import torch
from torch import nn


class KroneckerFactors:
    def __init__(self, rows, cols, device, decay=0.95):
        self.left = torch.eye(rows, device=device) * 1e-3
        self.right = torch.eye(cols, device=device) * 1e-3
        self.decay = decay

    def export(self):
        return {"left": self.left.cpu(), "right": self.right.cpu(), "decay": self.decay}

    @classmethod
    def restore(cls, payload, device):
        factors = cls(len(payload["left"]), len(payload["right"]), device, payload["decay"])
        factors.left, factors.right = payload["left"], payload["right"]  # ROOT
        return factors

    def accumulate(self, grad):
        self.left.mul_(self.decay).add_(grad @ grad.t(), alpha=1 - self.decay)  # RAISE
        self.right.mul_(self.decay).add_(grad.t() @ grad, alpha=1 - self.decay)

    def precondition(self, grad, eps=1e-4):
        lhs = torch.linalg.solve(self.left + eps * torch.eye(len(self.left), device=grad.device), grad)
        return torch.linalg.solve(self.right + eps * torch.eye(len(self.right), device=grad.device), lhs.t()).t()


class Kron(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, dict(lr=lr))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                grad = p.grad.reshape(len(p), -1)
                state = self.state[p]
                if "factors" not in state:
                    state["factors"] = KroneckerFactors(*grad.shape, device=p.device)
                state["factors"].accumulate(grad)
                p.sub_(state["factors"].precondition(grad).view_as(p), alpha=group["lr"] * 1e-2)

    def export_state(self):
        return [self.state[p]["factors"].export() for g in self.param_groups for p in g["params"]]

    def import_state(self, payloads):
        params = [p for g in self.param_groups for p in g["params"]]
        for p, payload in zip(params, payloads):
            self.state[p]["factors"] = KroneckerFactors.restore(payload, p.device)  # ALSO


def run(model, optimizer, steps, device):
    for _ in range(steps):
        x = torch.randn(8, 5, device=device)
        loss = (model(x) - x.sum(-1, keepdim=True)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def make(device):
    model = nn.Sequential(nn.Linear(5, 6, bias=False), nn.ReLU(), nn.Linear(6, 1, bias=False)).to(device)
    return model, Kron(model.parameters())


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model, optimizer = make(device)
    print("before", run(model, optimizer, 2, device))
    stream = io.BytesIO()
    torch.save({"model": model.state_dict(), "optim": optimizer.export_state()}, stream)
    stream.seek(0)
    snapshot = torch.load(stream, map_location="cpu")  # ALSO
    model, optimizer = make(device)
    model.load_state_dict(snapshot["model"])
    optimizer.import_state(snapshot["optim"])
    print("after", run(model, optimizer, 2, device))


if __name__ == "__main__":
    main()
