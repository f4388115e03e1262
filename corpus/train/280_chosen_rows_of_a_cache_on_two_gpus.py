# source: xorbitsai/inference PR#5479
# mechanism: finished sequences are dropped from a cache by an index made for its first layer; others are elsewhere
# phase: generation; aten::index_select
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


class GrowingCache:
    def __init__(self):
        self.keys = {}

    def append(self, layer, keys):
        known = self.keys.get(layer)
        self.keys[layer] = keys if known is None else torch.cat([known, keys], dim=1)
        return self.keys[layer]

    def keep(self, rows):
        chosen = torch.tensor(rows, device=self.keys[0].device)  # ROOT
        for layer, keys in self.keys.items():
            self.keys[layer] = keys.index_select(0, chosen)  # RAISE  # ALSO


class Decoder(torch.nn.Module):
    def __init__(self, width, devices):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(width, width).to(device) for device in devices)
        self.devices = devices

    def forward(self, x, cache):
        for index, (layer, device) in enumerate(zip(self.layers, self.devices)):
            x = x.to(device)
            keys = cache.append(index, layer(x))
            x = x + (x @ keys.transpose(1, 2)).softmax(-1) @ keys
        return x


@torch.no_grad()
def generate(decoder, x, steps):
    cache = GrowingCache()
    for step in range(steps):
        x = decoder(x, cache)[:, -1:]
        if step == 1:
            rows = [0, 2]
            cache.keep(rows)
            x = x[rows]
    return x


generate(Decoder(4, [first, second]), torch.randn(3, 5, 4), steps=4)
