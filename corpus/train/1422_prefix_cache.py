# source: huggingface/peft#2189
# mechanism: learned prefixes become a cache of keys and values on one GPU, and a model that is spread over two joins them to keys of its second GPU
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class LayerCache:
    def __init__(self, pairs):
        self.keys = [k for k, _ in pairs]
        self.values = [v for _, v in pairs]

    def update(self, key, value, idx):
        self.keys[idx] = torch.cat([self.keys[idx], key], dim=1)  # RAISE
        self.values[idx] = torch.cat([self.values[idx], value], dim=1)
        return self.keys[idx], self.values[idx]

    def map_to(self, device_map):
        for idx, device in device_map.items():
            self.keys[idx] = self.keys[idx].to(device)
            self.values[idx] = self.values[idx].to(device)
        return self


class Attention(nn.Module):
    def __init__(self, dim, idx):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.idx = idx

    def forward(self, x, cache):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if cache is not None:
            k, v = cache.update(k, v, self.idx)
        return x + torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v


class SpreadLM(nn.Module):
    def __init__(self, vocab=30, dim=8, layers=4):
        super().__init__()
        self.dim, self.num_layers = dim, layers
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList([Attention(dim, i) for i in range(layers)])
        self.head = nn.Linear(dim, vocab)
        self.device_map = {}

    def dispatch(self, devices):
        per = self.num_layers // len(devices)
        self.embed.to(devices[0])
        for i, layer in enumerate(self.layers):
            self.device_map[i] = torch.device(devices[min(i // per, len(devices) - 1)])
            layer.to(self.device_map[i])
        self.head.to(devices[-1])
        return self

    def forward(self, ids, cache=None):
        x = self.embed(ids)
        for i, layer in enumerate(self.layers):
            x = layer(x.to(self.device_map[i]), cache)
        return self.head(x)


class PrefixModel(nn.Module):
    def __init__(self, base, tokens=3):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.tokens = tokens
        self.prompt = nn.Embedding(tokens, base.num_layers * 2 * base.dim)
        self.prompt.to(base.embed.weight.device)

    def get_prompt(self, batch):
        ids = torch.arange(self.tokens, device=self.prompt.weight.device)
        flat = self.prompt(ids).expand(batch, -1, -1)
        parts = flat.view(batch, self.tokens, self.base.num_layers, 2, self.base.dim)
        pairs = [tuple(p.unbind(2)) for p in parts.unbind(2)]  # ALSO
        cache = LayerCache(pairs)  # ROOT
        return cache  # ALSO

    def forward(self, ids):
        return self.base(ids, cache=self.get_prompt(ids.shape[0]))  # ALSO


def main():
    base = SpreadLM().dispatch(["cuda:0", "cuda:1"])
    model = PrefixModel(base)
    optimizer = torch.optim.Adam(model.prompt.parameters(), lr=1e-2)
    ids = torch.randint(0, 30, (2, 6), device="cuda:0")
    logits = model(ids)
    target = ids[:, 1:].to(logits.device)
    loss = nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), target.flatten())
    loss.backward()
    optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
