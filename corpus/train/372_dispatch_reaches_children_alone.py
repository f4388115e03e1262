# source: huggingface/accelerate#1041, huggingface/accelerate#2421
# mechanism: a device map is applied child by child; a parameter of the module itself is no child's
# phase: forward; aten::mul
# expect: raises
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(width))
        self.inner, self.outer = nn.Linear(width, width), nn.Linear(width, 2)

    def forward(self, x):
        hidden = self.inner(x).relu()
        return self.outer(hidden * self.scale)  # RAISE


def dispatch(model, device_map):
    for name, child in model.named_children():  # ROOT
        child.to(device_map[name])
    return model  # ALSO


net = dispatch(Scaled(3), {"inner": "cuda", "outer": "cuda"})
net(torch.ones(2, 3, device="cuda"))
