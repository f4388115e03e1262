# source: huggingface/diffusers#5897
# mechanism: a function wraps the layers of a model that is on the GPU already; what the wrappers add is made on the CPU
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, inner, rank):
        super().__init__()
        self.inner = inner
        self.down = nn.Linear(inner.in_features, rank, bias=False)  # ALSO
        self.up = nn.Linear(rank, inner.out_features, bias=False)  # ALSO

    def forward(self, x):
        low = self.down(x)  # RAISE
        return self.inner(x) + self.up(low)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        return self.norm(x + self.query(x) * self.value(x))


def adapt(model, rank, names=("query", "value")):
    for module in list(model.modules()):
        for name in names:
            if isinstance(getattr(module, name, None), nn.Linear):
                setattr(module, name, Adapted(getattr(module, name), rank))  # ALSO
    return [p for name, p in model.named_parameters() if ".down." in name or ".up." in name]


def main():
    model = nn.Sequential(nn.Linear(4, 8), Block(8), Block(8), nn.Linear(8, 2))
    model.to("cuda")
    x = torch.rand(5, 4, device="cuda")
    print(model(x).sum())
    trained = adapt(model, rank=2)  # ROOT
    optimizer = torch.optim.SGD(trained, lr=0.1)
    model(x).sum().backward()
    optimizer.step()


main()
