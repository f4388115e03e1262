# source: none; the shape of models that are dealt out over GPUs by hand, with a hook for the inputs of each layer
# mechanism: a forward pre-hook brings over what its layer is given by position; the bias of the attention is given by name
# phase: forward of the first layer on the second GPU; aten::add
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Mixer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ask, self.tell = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, tokens, distances=None):
        weights = self.ask(tokens) @ tokens.transpose(-1, -2)
        if distances is not None:
            weights = weights - distances  # RAISE  # ALSO
        return tokens + weights.softmax(-1) @ self.tell(tokens)


def deal(layers, count):
    for number, layer in enumerate(layers):
        place = torch.device("cuda", number * count // len(layers))
        layer.to(place)

        def bring(_, inputs, place=place):  # ALSO
            return tuple(one.to(place) for one in inputs)  # ALSO

        layer.register_forward_pre_hook(bring)  # ROOT


stack = nn.ModuleList(Mixer(4) for _ in range(4))
deal(stack, count=2)
tokens = torch.randn(2, 6, 4, device="cuda:0")
steps = torch.arange(6, device="cuda:0")
distances = (steps[:, None] - steps).abs()
for layer in stack:
    tokens = layer(tokens, distances=distances)  # ALSO
print(tokens.shape)
