# source: facebookresearch/schedule_free#42
# mechanism: an optimizer that interpolates the weights with its state in train() and eval() is loaded before the model is moved, and its state stays on the CPU
# expect: raises
import io

import torch
from torch import nn


class AveragingSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=0.05, momentum=0.9):
        super().__init__(params, dict(lr=lr, momentum=momentum, train_mode=True, k=0))

    @torch.no_grad()
    def eval(self):
        for group in self.param_groups:
            if group["train_mode"]:
                for p in group["params"]:
                    state = self.state[p]
                    if "z" in state:
                        p.data.lerp_(end=state["z"], weight=1 - 1 / group["momentum"])  # RAISE # ROOT
                group["train_mode"] = False

    @torch.no_grad()
    def train(self):
        for group in self.param_groups:
            if not group["train_mode"]:
                for p in group["params"]:
                    state = self.state[p]
                    if "z" in state:
                        p.data.lerp_(end=state["z"].to(p.data.device), weight=1 - group["momentum"])
                group["train_mode"] = True

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            group["k"] += 1
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                if "z" not in state:
                    state["z"] = torch.clone(p.data)
                z = state["z"]
                p.data.lerp_(end=z, weight=1.0 / group["k"])
                p.data.add_(p.grad, alpha=-group["lr"] * (1 - group["momentum"]))
                z.sub_(p.grad, alpha=group["lr"])


def build(features=4):
    model = nn.Sequential(nn.Linear(features, 8), nn.ReLU(), nn.Linear(8, 1))
    return model, AveragingSGD(model.parameters())


def run_epoch(model, optimizer, data, device):
    model.train()
    optimizer.train()
    x, y = data[0].to(device), data[1].to(device)
    for xb, yb in zip(x.split(4), y.split(4)):
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


@torch.no_grad()
def evaluate(model, optimizer, data, device):
    model.eval()
    optimizer.eval()
    x, y = (t.to(device) for t in data)
    return nn.functional.mse_loss(model(x), y).item()


def restore(blob, device):
    checkpoint = torch.load(io.BytesIO(blob), map_location="cpu")
    model, optimizer = build()
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])  # ALSO
    model.to(device)  # ALSO
    return model, optimizer


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.randn(16, 4)
    data = (x, x.sum(1, keepdim=True))
    model, optimizer = build()
    model.to(device)
    run_epoch(model, optimizer, data, device)
    buffer = io.BytesIO()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, buffer)
    model, optimizer = restore(buffer.getvalue(), device)
    print("eval %.4f" % evaluate(model, optimizer, data, device))


if __name__ == "__main__":
    main()
