# source: marsggbo/hyperbox#6, PR#7
# mechanism: [module list not registered] base class has its own __setattr__, for freezing attributes, and writes straight into __dict__; layers assigned in its subclasses are never registered
# phase: forward; failing op: aten::conv2d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Mutable(nn.Module):
    def __init__(self, key):
        super().__init__()
        self.key = key

    def freeze(self, *names):
        self.frozen_attributes = names

    def __setattr__(self, attribute, value):
        if attribute in self.__dict__.get("frozen_attributes", ()):
            raise AttributeError(f"{attribute} is frozen")
        self.__dict__[attribute] = value  # ROOT


class LayerChoice(Mutable):
    def __init__(self, key, channels):
        super().__init__(key)
        self.choices = nn.ModuleList(nn.Conv2d(channels, channels, k, padding=k // 2) for k in (1, 3))
        self.index = 0

    def forward(self, x):
        return self.choices[self.index](x)  # RAISE


net = nn.Sequential(nn.Conv2d(3, 4, 1), LayerChoice("block1", 4), nn.ReLU(), LayerChoice("block2", 4))
net[3].freeze("key")
net.to(dev)
net(torch.rand(1, 3, 8, 8, device=dev))
