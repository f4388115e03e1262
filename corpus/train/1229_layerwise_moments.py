# source: NVIDIA/apex PR#459
# mechanism: an optimizer keeps its second moments as tensors in the parameter groups, which load_state_dict takes over without a move
# expect: raises
import os
import tempfile
from typing import Callable, Iterable, Optional

import torch
from torch import nn
from torch.optim import Optimizer


class NovoGrad(Optimizer):
    """Layer-wise adaptive moments: one second moment for each tensor."""

    def __init__(self, params: Iterable, lr: float = 1e-3, betas=(0.95, 0.98), eps: float = 1e-8, weight_decay: float = 0.0):
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, step=0))

    def load_state_dict(self, state_dict: dict) -> None:
        super().load_state_dict(state_dict)  # ROOT
        for group in self.param_groups:
            group.setdefault("step", 0)

    def _init_group(self, group: dict, norms: torch.Tensor) -> None:
        group["exp_avg_sq"] = norms.clone()

    @torch.no_grad()
    def step(self, closure: Optional[Callable] = None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None]
            norms = torch.stack([p.grad.pow(2).sum() for p in params])
            beta1, beta2 = group["betas"]
            group["step"] += 1
            if "exp_avg_sq" not in group:
                self._init_group(group, norms)
            else:
                group["exp_avg_sq"] = beta2 * group["exp_avg_sq"] + (1 - beta2) * norms  # RAISE # ALSO
            denoms = group["exp_avg_sq"].sqrt() + group["eps"]
            for p, denom in zip(params, denoms):
                state = self.state[p]
                if not state:
                    state["exp_avg"] = torch.zeros_like(p)
                grad = p.grad / denom + group["weight_decay"] * p
                state["exp_avg"].mul_(beta1).add_(grad)
                p.add_(state["exp_avg"], alpha=-group["lr"])
        return loss


class Recommender(nn.Module):
    def __init__(self, users: int, items: int, dim: int):
        super().__init__()
        self.users, self.items = nn.Embedding(users, dim), nn.Embedding(items, dim)
        self.bias = nn.Parameter(torch.zeros(items))

    def forward(self, u: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return (self.users(u) * self.items(i)).sum(-1) + self.bias[i]


class Run:
    def __init__(self, device: torch.device):
        self.device = device
        self.model = Recommender(12, 20, 8).to(device)
        self.optimizer = NovoGrad(self.model.parameters(), lr=0.01)
        self.epoch = 0

    def save(self, path: str) -> None:
        torch.save({"model": self.model.state_dict(), "optim": self.optimizer.state_dict(), "epoch": self.epoch}, path)

    def resume(self, path: str) -> "Run":
        checkpoint = torch.load(path, map_location="cpu")
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optim"])
        self.epoch = checkpoint["epoch"]
        return self

    def train_epoch(self, users: torch.Tensor, items: torch.Tensor, ratings: torch.Tensor) -> float:
        total = 0.0
        for idx in torch.arange(len(users)).split(16):
            u, i, r = (t[idx].to(self.device) for t in (users, items, ratings))
            loss = nn.functional.mse_loss(self.model(u, i), r)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        self.epoch += 1
        return total


def main() -> None:
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    data = torch.randint(0, 12, (48,)), torch.randint(0, 20, (48,)), torch.rand(48)
    run = Run(device)
    print("epoch", run.epoch, run.train_epoch(*data))
    with tempfile.TemporaryDirectory() as tmp:
        path = os.path.join(tmp, "last.pt")
        run.save(path)
        resumed = Run(device).resume(path)
    print("epoch", resumed.epoch, resumed.train_epoch(*data))


if __name__ == "__main__":
    main()
