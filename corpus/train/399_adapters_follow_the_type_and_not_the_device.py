# source: huggingface/peft#1639
# mechanism: adapters are added to a model that is on the GPU; what their layers are made with says the type alone
# phase: forward; aten::linear
# expect: raises
import torch
from torch import nn


class Adapted(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base, self.adapters, self.active = base, nn.ModuleDict(), None

    def add(self, name, rank):
        weight = self.base.weight
        options = dict(bias=False, dtype=weight.dtype)  # ROOT
        down = nn.Linear(weight.shape[1], rank, **options)
        up = nn.Linear(rank, weight.shape[0], **options)
        self.adapters[name] = nn.Sequential(down, up)  # ALSO
        self.active = name

    def forward(self, x):
        y = self.base(x)
        return y if self.active is None else y + self.adapters[self.active](x)  # RAISE


model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), Adapted(nn.Linear(8, 8)), nn.Linear(8, 2)).to("cuda")
x = torch.rand(3, 4, device="cuda")
model(x)
model[2].add("first", rank=2)
model(x)
