# source: huggingface/transformers#34456
# mechanism: a device map is filled by hand, and by update() for the second half, where the norm has no entry
# phase: inference; layer_norm
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Forecaster(nn.Module):
    def __init__(self, sensors, width):
        super().__init__()
        self.embed = nn.Linear(sensors, width)
        self.layer_0 = nn.Linear(width, width)
        self.layer_1 = nn.Linear(width, width)
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, sensors)

    def forward(self, x):
        x = self.embed(x)
        x = torch.relu(self.layer_0(x))
        x = x.to(self.layer_1.weight.device)
        x = torch.relu(self.layer_1(x))
        x = self.norm(x)  # RAISE
        return self.head(x)


def place(model, device_map):
    for name, device in device_map.items():
        getattr(model, name).to(device)
    return model.eval()


device_map = {"embed": "cuda:0", "layer_0": "cuda:0"}  # ROOT
device_map.update({"layer_1": "cuda:1", "head": "cuda:1"})  # ALSO

model = place(Forecaster(4, 8), device_map)
with torch.no_grad():
    week = model(torch.randn(7, 4, device="cuda:0"))
print(week.shape)
