# source: own; servers that swap the adapters of a model between requests
# mechanism: the adapter's weights become new Parameters of layers that have been moved, as they came
# phase: forward after the swap; failing op: aten::linear
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda", 0)


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.mix = nn.Parameter(torch.eye(width))

    def forward(self, x):
        return F.linear(self.inner(x), self.mix)  # RAISE


def put_in(model, weights):
    for path, value in weights.items():
        owner, name = path.rsplit(".", 1)
        setattr(model.get_submodule(owner), name, nn.Parameter(value))  # ROOT


model = nn.Sequential(Scaled(4), nn.Tanh(), Scaled(4)).to(device)
rows = torch.randn(2, 4, device=device)
model(rows)
put_in(model, {"0.mix": torch.randn(4, 4), "2.mix": torch.randn(4, 4)})  # ALSO
model(rows)
