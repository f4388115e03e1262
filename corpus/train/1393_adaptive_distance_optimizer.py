# source: konstmish/prodigy#1
# mechanism: an optimizer keeps a statistic as a tensor in its parameter group, which load_state_dict() leaves on the CPU where the checkpoint was read
# expect: raises
import os
import tempfile

import torch
from torch import nn


class DistanceSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1.0, d0=1e-2, beta=0.9, growth=1.5):
        super().__init__(params, dict(lr=lr, d=d0, d0=d0, beta=beta, growth=growth, k=0, d_numerator=None))

    def _init_state(self, p):
        state = self.state[p]
        if len(state) == 0:
            state["p0"] = p.detach().clone()
            state["s"] = torch.zeros_like(p)
        return state

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            device = group["params"][0].device
            d, beta = group["d"], group["beta"]
            if group["d_numerator"] is None:
                group["d_numerator"] = torch.zeros(1, device=device)
            d_numerator = group["d_numerator"]  # ROOT
            d_numerator.mul_(beta)
            d_denom = torch.zeros(1, device=device)
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self._init_state(p)
                slide = torch.dot(p.grad.flatten(), (state["p0"] - p).flatten())
                d_numerator.add_(slide, alpha=d * group["lr"] / group["d0"])  # RAISE
                state["s"].mul_(beta).add_(p.grad, alpha=d)
                d_denom.add_(state["s"].abs().sum())
            d_hat = (d_numerator / d_denom.clamp(min=1e-12)).item()
            group["d"] = max(d, min(d_hat, d * group["growth"]))
            for p in group["params"]:
                if p.grad is not None:
                    p.add_(p.grad, alpha=-group["d"] * group["lr"])
            group["k"] += 1


class VoiceModel(nn.Module):
    def __init__(self, dim=6):
        super().__init__()
        self.enc = nn.Linear(dim, 12)
        self.dec = nn.Linear(12, dim)

    def forward(self, x):
        return self.dec(torch.relu(self.enc(x)))


class Session:
    def __init__(self, device):
        self.device = device
        self.model = VoiceModel().to(device)
        self.optimizer = DistanceSGD(self.model.parameters())
        self.epoch = 0

    def train_epoch(self, batches):
        for x in batches:
            x = x.to(self.device)
            loss = nn.functional.mse_loss(self.model(x), x)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.epoch += 1
        return loss.item()

    def save(self, path):
        torch.save({"model": self.model.state_dict(), "optim": self.optimizer.state_dict(), "epoch": self.epoch}, path)

    def resume(self, path):
        checkpoint = torch.load(path, map_location="cpu")  # ALSO
        self.model.load_state_dict(checkpoint["model"])
        self.optimizer.load_state_dict(checkpoint["optim"])  # ALSO
        self.epoch = checkpoint["epoch"]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    batches = [torch.randn(4, 6) for _ in range(3)]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "G_last.pth")
        session = Session(device)
        print("loss %.3f" % session.train_epoch(batches))
        session.save(path)
        session = Session(device)
        session.resume(path)
        print("loss %.3f, epoch %d" % (session.train_epoch(batches), session.epoch))


if __name__ == "__main__":
    main()
