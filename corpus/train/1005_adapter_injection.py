# source: ViperEkura/AstrAI#19
# mechanism: low rank factors are created on the default device when they are injected into a model that already lives on the GPU
# expect: raises
import math

import torch
from torch import nn


class FactoredLinear(nn.Module):
    def __init__(self, base, rank, alpha):
        super().__init__()
        self.base = base
        self.scaling = alpha / rank
        self.down = nn.Parameter(torch.empty(rank, base.in_features))  # ROOT
        self.up = nn.Parameter(torch.zeros(base.out_features, rank, device=base.weight.device))
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        for parameter in self.base.parameters():
            parameter.requires_grad_(False)

    def forward(self, x):
        update = (x @ self.down.t()) @ self.up.t()  # RAISE
        return self.base(x) + self.scaling * update


class MLP(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc_in = nn.Linear(dim, 2 * dim)
        self.fc_out = nn.Linear(2 * dim, dim)

    def forward(self, x):
        return self.fc_out(torch.relu(self.fc_in(x)))


class Backbone(nn.Module):
    def __init__(self, dim=16, depth=2, classes=3):
        super().__init__()
        self.blocks = nn.ModuleList(MLP(dim) for _ in range(depth))
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.head(x)


def replace_module(root, path, new):
    *parents, leaf = path.split(".")
    target = root
    for part in parents:
        target = getattr(target, part)
    setattr(target, leaf, new)


def inject(model, targets=("fc_in", "fc_out"), rank=2, alpha=4.0):
    matches = [(n, m) for n, m in model.named_modules() if isinstance(m, nn.Linear) and n.split(".")[-1] in targets]
    for name, module in matches:
        replace_module(model, name, FactoredLinear(module, rank, alpha))  # ALSO
    return model  # ALSO


def trainable(model):
    return [p for p in model.parameters() if p.requires_grad]


def finetune(model, steps, device):
    optimizer = torch.optim.SGD(trainable(model), lr=0.05)
    for _ in range(steps):
        x = torch.randn(6, 16, device=device)
        y = torch.randint(0, 3, (6,), device=device)
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = Backbone().to(device)
    model = inject(model)  # ALSO
    print("trainable", sum(p.numel() for p in trainable(model)))
    print("loss", finetune(model, 3, device))


if __name__ == "__main__":
    main()
