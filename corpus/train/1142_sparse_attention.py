# source: huggingface/transformers PR#48763
# mechanism: updating the keys of an offloaded cache sends the whole layer to the CPU, and the indexer of the attention appends its keys to the same layer only after that.
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class IndexedLayer:
    def __init__(self):
        self.tensors = {}
        self.device = None

    def append(self, name, value):
        self.device = value.device
        if name in self.tensors:
            value = torch.cat([self.tensors[name], value], dim=1)  # RAISE  # ALSO
        self.tensors[name] = value
        return value

    def move(self, device):
        self.tensors = {k: v.to(device) for k, v in self.tensors.items()}


class OffloadedIndexedCache:
    def __init__(self, layers):
        self.layers = [IndexedLayer() for _ in range(layers)]

    def update(self, keys, values, layer_idx):
        layer = self.layers[layer_idx]
        keys, values = layer.append("keys", keys), layer.append("values", values)
        layer.move("cpu")  # ALSO
        following = self.layers[(layer_idx + 1) % len(self.layers)]
        if following.device is not None:
            following.move(following.device)
        return keys, values

    def update_indexer(self, keys, layer_idx):
        return self.layers[layer_idx].append("indexer", keys)  # ALSO


class Indexer(nn.Module):
    def __init__(self, dim, index_dim, topk):
        super().__init__()
        self.q = nn.Linear(dim, index_dim)
        self.k = nn.Linear(dim, index_dim)
        self.topk = topk

    def forward(self, x, cache, layer_idx):
        keys = self.k(x)
        if cache is not None:
            keys = cache.update_indexer(keys, layer_idx)
        scores = torch.relu(self.q(x) @ keys.transpose(1, 2))
        chosen = scores.topk(min(self.topk, scores.shape[-1]), dim=-1).indices
        return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, chosen, True)


class SparseAttention(nn.Module):
    def __init__(self, dim, layer_idx, topk=4):
        super().__init__()
        self.layer_idx = layer_idx
        self.qkv = nn.Linear(dim, 3 * dim)
        self.indexer = Indexer(dim, 8, topk)

    def forward(self, x, cache=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        if cache is not None:
            k, v = cache.update(k, v, self.layer_idx)  # ALSO
        index_mask = self.indexer(x, cache, self.layer_idx)  # ROOT
        return x + F.scaled_dot_product_attention(q, k, v, attn_mask=index_mask)


class SparseLM(nn.Module):
    def __init__(self, vocab=24, dim=16, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(SparseAttention(dim, i) for i in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids, cache=None):
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x, cache)
        return self.head(x)


@torch.no_grad()
def generate(model, ids, steps, cache=None):
    tokens = [ids]
    for _ in range(steps):
        fed = tokens[-1] if cache is not None else torch.cat(tokens, dim=1)
        tokens.append(model(fed, cache)[:, -1:].argmax(-1))
    return torch.cat(tokens, dim=1)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = SparseLM().to(device).eval()
    ids = torch.tensor([[2, 7, 1, 8]], device=device)
    print(generate(model, ids, 3).tolist())
    print(generate(model, ids, 3, OffloadedIndexedCache(len(model.layers))).tolist())


if __name__ == "__main__":
    main()
