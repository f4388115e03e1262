# source: huggingface/transformers#46886
# mechanism: per-layer position embeddings stay on the first GPU while the hidden states follow the layers to the second GPU
# needs: 2 GPUs
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class VitConfig:
    image: int = 16
    patch: int = 4
    hidden: int = 24
    heads: int = 4
    layers: int = 4
    queries: int = 3
    use_mid_position: bool = True

    @property
    def tokens(self):
        return (self.image // self.patch) ** 2 + self.queries


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden)
        self.attention = nn.MultiheadAttention(config.hidden, config.heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(config.hidden, 2 * config.hidden), nn.GELU(), nn.Linear(2 * config.hidden, config.hidden))

    def forward(self, hidden):
        x = self.norm(hidden)
        hidden = hidden + self.attention(x, x, x, need_weights=False)[0]
        return hidden + self.mlp(hidden)


class MidInterpolation(nn.Module):
    def forward(self, embeddings, length):
        if embeddings.shape[2] == length:
            return embeddings
        depth = embeddings.shape[0]
        resized = nn.functional.interpolate(embeddings.flatten(0, 1).transpose(1, 2), size=length)
        return resized.transpose(1, 2).unflatten(0, (depth, 1))


class Encoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.mid_position = None
        if config.use_mid_position:
            self.mid_position = nn.Parameter(torch.randn(config.layers - 1, 1, config.tokens, config.hidden) * 0.02)
        self.interpolation = MidInterpolation()

    def forward(self, hidden):
        mid = None
        if self.mid_position is not None:
            mid = self.interpolation(self.mid_position, hidden.shape[1])
        for number, layer in enumerate(self.layers):
            hidden = layer(hidden)
            if mid is not None and number < len(self.layers) - 1:
                hidden = hidden + mid[number]  # RAISE # ROOT
        return hidden


class Detector(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.patches = nn.Conv2d(3, config.hidden, config.patch, config.patch)
        self.queries = nn.Parameter(torch.randn(1, config.queries, config.hidden))
        self.encoder = Encoder(config)
        self.boxes = nn.Linear(config.hidden, 4)

    def forward(self, pixels):
        x = self.patches(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([x, self.queries.expand(len(x), -1, -1)], 1)
        return self.boxes(self.encoder(x)[:, -self.queries.shape[1]:]).sigmoid()


def attach(module, device):
    module.to(device)
    module.register_forward_pre_hook(lambda m, args: tuple(a.to(device) for a in args))


def dispatch(model, devices):
    layers = model.encoder.layers
    share = (len(layers) + len(devices) - 1) // len(devices)
    model.to(devices[0])
    for number, layer in enumerate(layers):
        attach(layer, devices[number // share])
    attach(model.boxes, devices[-1])
    return model


if __name__ == "__main__":
    torch.manual_seed(0)
    detector = dispatch(Detector(VitConfig()), [torch.device("cuda:0"), torch.device("cuda:1")])
    print(detector(torch.randn(2, 3, 16, 16, device="cuda:0")).mean().item())
