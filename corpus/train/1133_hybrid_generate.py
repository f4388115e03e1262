# source: huggingface/transformers PR#46748
# mechanism: an offloaded cache fetches the layer of the next index ahead; in a hybrid model that one keeps no keys, so those of the next attention layer stay on the CPU.
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class AttentionCacheLayer:
    def __init__(self):
        self.keys = self.values = None
        self.device = None

    def update(self, keys, values):
        self.device = keys.device  # ALSO
        if self.keys is None:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat([self.keys, keys], dim=1)  # RAISE
            self.values = torch.cat([self.values, values], dim=1)
        return self.keys, self.values

    def offload(self):
        self.keys, self.values = self.keys.to("cpu"), self.values.to("cpu")

    def prefetch(self):
        if self.keys is not None and self.keys.device != self.device:
            self.keys, self.values = self.keys.to(self.device), self.values.to(self.device)


class LinearCacheLayer:
    def __init__(self):
        self.state = None

    def update_state(self, state):
        self.state = state
        return state

    def prefetch(self):
        pass


class OffloadedCache:
    def __init__(self, layer_types):
        kinds = {"attention": AttentionCacheLayer, "linear": LinearCacheLayer}
        self.layers = [kinds[kind]() for kind in layer_types]

    def next_layer(self, layer_idx):
        return (layer_idx + 1) % len(self.layers)  # ROOT

    def update(self, keys, values, layer_idx):
        layer = self.layers[layer_idx]
        keys, values = layer.update(keys, values)  # ALSO
        layer.offload()
        self.layers[self.next_layer(layer_idx)].prefetch()  # ALSO
        return keys, values


class AttentionLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, cache, index):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        k, v = cache.update(k, v, index)
        return x + F.scaled_dot_product_attention(q, k, v)


class LinearLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, cache, index):
        new = self.proj(x).cumsum(dim=1)
        old = cache.layers[index].state
        if old is not None:
            new = new + old[:, None]
        cache.layers[index].update_state(new[:, -1])
        return x + torch.tanh(new)


class HybridModel(nn.Module):
    def __init__(self, layer_types, vocab=20, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        kinds = {"attention": AttentionLayer, "linear": LinearLayer}
        self.layers = nn.ModuleList(kinds[kind](dim) for kind in layer_types)
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, cache):
        x = self.embed(ids)
        for index, layer in enumerate(self.layers):
            x = layer(x, cache, index)
        return self.head(x[:, -1:])


@torch.no_grad()
def generate(layer_types, steps, device):
    model = HybridModel(layer_types).to(device).eval()
    cache = OffloadedCache(layer_types)
    ids = torch.tensor([[3, 1, 4]], device=device)
    out = []
    for _ in range(steps):
        ids = model(ids, cache).argmax(-1)
        out.append(ids.item())
    return out


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    print(generate(["attention", "attention"], 3, device))
    print(generate(["attention", "linear", "linear", "attention"], 3, device))


if __name__ == "__main__":
    main()
