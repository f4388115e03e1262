# source: none; what averaged copies, caches, nested moves and arrays do when they do it right
# mechanism: weights are brought to the averaged copy, tables are kept by device, every call hands its device on, arrays are moved
# phase: training
# expect: clean
import copy

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def onto(value, device):
    if isinstance(value, dict):
        return {key: onto(part, device) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(onto(part, device) for part in value)
    return value.to(device, non_blocking=True)


class Shadow:
    def __init__(self, model, device):
        self.model = copy.deepcopy(model).to(device).requires_grad_(False)

    @torch.no_grad()
    def update(self, model, decay):
        for kept, weight in zip(self.model.parameters(), model.parameters()):
            kept.lerp_(weight.to(kept.device), 1 - decay)


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.tables = {}

    def forward(self, rows):
        if rows.device not in self.tables:
            self.tables[rows.device] = torch.linspace(0, 1, rows.shape[-1], device=rows.device)
        return self.mix(rows) + self.tables[rows.device]


def align(layer, inputs):
    return tuple(onto(one, layer.mix.weight.device) for one in inputs)


device = torch.device("cuda")
net = Net(4)
net(torch.randn(2, 4))
net.to(device).register_forward_pre_hook(align)
shadow = Shadow(net, "cpu")
scale = torch.from_numpy(np.linspace(1, 2, 4, dtype=np.float32)).to(device)
loader = DataLoader(TensorDataset(torch.randn(12, 4), torch.randn(12, 4)), batch_size=4, pin_memory=True)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for rows, wanted in loader:
    batch = onto({"rows": rows, "more": [wanted]}, device)
    loss = (net(batch["rows"]) * scale - batch["more"][0]).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shadow.update(net, 0.9)
print(shadow.model(torch.randn(1, 4)).shape)
