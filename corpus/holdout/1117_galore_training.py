# source: modelscope/ms-swift#1777
# mechanism: the projector object in the optimizer's state holds a plain tensor; loading a checkpoint moves the tensors of the state to the GPU but not the one inside this object.
# expect: raises
import os
import tempfile

import torch
from torch import nn


class GaLoreProjector:
    def __init__(self, rank, update_gap=10):
        self.rank = rank
        self.update_gap = update_gap
        self.ortho = None

    def refresh(self, grad):
        _, _, right = torch.linalg.svd(grad.detach().cpu().float(), full_matrices=False)
        self.ortho = right[: self.rank].to(grad.device, grad.dtype)

    def project(self, grad, step):
        if self.ortho is None or step % self.update_gap == 0:
            self.refresh(grad)
        return grad @ self.ortho.t()  # RAISE # ROOT

    def project_back(self, update):
        return update @ self.ortho


class GaLoreSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, momentum=0.9, rank=2):
        super().__init__(params, dict(lr=lr, momentum=momentum, rank=rank))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if not state:
                    state["step"] = 0
                    state["projector"] = GaLoreProjector(group["rank"])
                low = state["projector"].project(p.grad, state["step"])
                if "buf" not in state:
                    state["buf"] = torch.zeros_like(low)
                state["buf"].mul_(group["momentum"]).add_(low)
                p.add_(state["projector"].project_back(state["buf"]), alpha=-group["lr"])
                state["step"] += 1


class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Sequential(nn.Linear(8, 8, bias=False), nn.Tanh(), nn.Linear(8, 4, bias=False)).to(device)
        self.optimizer = GaLoreSGD(self.model.parameters())

    def train(self, steps):
        for _ in range(steps):
            x = torch.randn(4, 8).to(self.device)
            loss = self.model(x).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}, path)

    def resume(self, path):
        checkpoint = torch.load(path, map_location="cpu", weights_only=False)  # ALSO
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optimizer"])


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "checkpoint.pt")
        first = Trainer(device)
        print("first run", first.train(3))
        first.save(path)
        second = Trainer(device)
        second.resume(path)
        print("resumed", second.train(3))


if __name__ == "__main__":
    main()
