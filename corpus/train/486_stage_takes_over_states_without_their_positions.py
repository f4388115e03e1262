# source: pipelines written by hand, where a stage receives a pair and moves the first of it
# mechanism: what a stage is given in a tuple is moved, all but the positions
# phase: forward; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, states, phases):
        return self.mix(states) + phases.sin()  # RAISE


class Stage(nn.Module):
    def __init__(self, place, layers):
        super().__init__()
        self.place = place
        self.layers = nn.ModuleList(Layer(8) for _ in range(layers)).to(place)

    def take(self, states, phases):
        return states.to(self.place), phases  # ROOT

    def forward(self, pair):
        states, phases = self.take(*pair)  # ALSO
        for layer in self.layers:
            states = layer(states, phases)
        return states, phases


phases = torch.linspace(0, 3, 5, device=first)[None, :, None]
pair = (torch.randn(2, 5, 8, device=first), phases)
for stage in (Stage(first, 2), Stage(second, 1)):
    pair = stage(pair)
