# source: huggingface/transformers#34456
# mechanism: a device map is filled by hand, one line after the other; the last norm has none
# phase: inference; layer_norm
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Harvest(nn.Module):
    def __init__(self, fields, width):
        super().__init__()
        self.embed = nn.Linear(fields, width)
        self.layer_0 = nn.Linear(width, width)
        self.layer_1 = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, fields)

    def forward(self, x):
        x = self.embed(x)
        x = torch.relu(self.layer_0(x))
        x = x.to(self.layer_1.weight.device)
        x = torch.relu(self.layer_1(x))
        x = self.norm(x)  # RAISE
        return self.head(x)


def place(model, device_map):
    for name, index in device_map.items():
        getattr(model, name).to(f"cuda:{index}")
    return model.eval()


device_map = {}  # ALSO
device_map["embed"] = 0
for i in range(2):
    device_map[f"layer_{i}"] = i  # ALSO
device_map["head"] = 1  # ROOT

model = place(Harvest(4, 8), device_map)
with torch.no_grad():
    year = model(torch.randn(7, 4, device="cuda:0"))
print(year.shape)
