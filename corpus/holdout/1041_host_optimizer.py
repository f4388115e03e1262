# source: own program
# mechanism: master weights and optimizer state live on the host, gradients are copied down and updated weights copied up with copy_
# expect: clean
import io

import torch
from torch import nn


class HostOptimizer:
    def __init__(self, params, factory):
        self.live = list(params)
        self.master = [nn.Parameter(p.detach().to("cpu", copy=True)) for p in self.live]
        self.inner = factory(self.master)

    def clip(self, limit):
        squares = [p.grad.pow(2).sum().cpu() for p in self.live if p.grad is not None]
        total = torch.stack(squares).sum().sqrt()
        scale = (limit / (total + 1e-6)).clamp(max=1.0)
        for p in self.live:
            if p.grad is not None:
                p.grad.mul_(scale)
        return total.item()

    def step(self):
        for live, master in zip(self.live, self.master):
            master.grad = None if live.grad is None else live.grad.cpu()
        self.inner.step()
        with torch.no_grad():
            for live, master in zip(self.live, self.master):
                live.copy_(master)

    def zero_grad(self):
        for p in self.live:
            p.grad = None

    def state_dict(self):
        return {"inner": self.inner.state_dict(), "master": [m.detach() for m in self.master]}

    def load_state_dict(self, state):
        self.inner.load_state_dict(state["inner"])
        with torch.no_grad():
            for live, master, value in zip(self.live, self.master, state["master"]):
                master.copy_(value)
                live.copy_(value)


def build():
    net = nn.Sequential(nn.Linear(6, 10), nn.SiLU(), nn.Linear(10, 1)).to("cuda")
    return net, HostOptimizer(net.parameters(), lambda ps: torch.optim.AdamW(ps, lr=0.02))


def run(net, optimizer, steps):
    for _ in range(steps):
        x = torch.randn(12, 6, device="cuda")
        loss = (net(x) - x[:, :1]).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.clip(1.0)
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    net, optimizer = build()
    print("first", run(net, optimizer, 3))
    stream = io.BytesIO()
    torch.save(optimizer.state_dict(), stream)
    stream.seek(0)
    net, optimizer = build()
    optimizer.load_state_dict(torch.load(stream, map_location="cpu"))
    print("second", run(net, optimizer, 3), {m.device.type for m in optimizer.master})


if __name__ == "__main__":
    main()
