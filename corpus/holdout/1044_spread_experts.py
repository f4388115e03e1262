# source: own program
# mechanism: experts live on different devices (one GPU and the host); tokens are moved to each expert and the results are moved back before they are added
# expect: clean
from collections import Counter

import torch
from torch import nn


class Expert(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.up, self.down = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    @property
    def device(self):
        return self.up.weight.device

    def forward(self, x):
        return self.down(torch.nn.functional.silu(self.up(x)))


class Router(nn.Module):
    def __init__(self, dim, experts, top_k):
        super().__init__()
        self.proj = nn.Linear(dim, experts, bias=False)
        self.top_k = top_k

    def forward(self, x):
        weights, chosen = self.proj(x).softmax(-1).topk(self.top_k, dim=-1)
        return weights / weights.sum(-1, keepdim=True), chosen


class SpreadMoE(nn.Module):
    def __init__(self, dim, placement, main="cuda", top_k=2):
        super().__init__()
        self.router = Router(dim, len(placement), top_k).to(main)
        self.experts = nn.ModuleList(Expert(dim).to(d) for d in placement)
        self.load = Counter()

    def forward(self, x):
        weights, chosen = self.router(x)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            token, slot = (chosen == number).nonzero(as_tuple=True)
            if not len(token):
                continue
            y = expert(x[token].to(expert.device)).to(x.device)
            out = out.index_add(0, token, y * weights[token, slot][:, None])
            self.load[str(expert.device)] += len(token)
        return out


class Layer(nn.Module):
    def __init__(self, dim, placement):
        super().__init__()
        self.norm = nn.LayerNorm(dim).to("cuda")
        self.moe = SpreadMoE(dim, placement)

    def forward(self, x):
        return x + self.moe(self.norm(x))


def optimizers(model):
    by_device = {}
    for p in model.parameters():
        by_device.setdefault(p.device, []).append(p)
    return [torch.optim.SGD(ps, lr=0.05, momentum=0.9) for ps in by_device.values()]


def main():
    torch.manual_seed(0)
    layer = Layer(8, ["cuda", "cpu", "cuda", "cpu"])
    opts = optimizers(layer)
    for _ in range(3):
        x = torch.randn(16, 8, device="cuda")
        loss = (layer(x) - x.flip(0)).pow(2).mean()
        for o in opts:
            o.zero_grad()
        loss.backward()
        for o in opts:
            o.step()
    print("loss", loss.item(), sorted(layer.moe.load), len(opts))


if __name__ == "__main__":
    main()
