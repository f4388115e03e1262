# source: unslothai/unsloth#8516
# mechanism: the process-wide cache of block masks is keyed by the lengths only, so a layer on the second GPU is given the mask made for the first one
# needs: 2 GPUs
# expect: raises
from collections import OrderedDict

import torch
from torch import nn

_MASKS = OrderedDict()
_LIMIT = 8


def block_causal(lengths, device):
    owner = torch.repeat_interleave(torch.arange(len(lengths)), torch.tensor(lengths)).to(device)
    same = owner[:, None] == owner[None]
    causal = torch.ones(len(owner), len(owner), dtype=torch.bool, device=device).tril()
    bias = torch.zeros(len(owner), len(owner), device=device)
    return bias.masked_fill(~(same & causal), float("-inf"))


def get_mask(lengths, window, device):
    key = (tuple(lengths), window)  # ROOT
    mask = _MASKS.get(key)
    if mask is None:  # ALSO
        mask = block_causal(lengths, device)
        if window:
            mask = mask.masked_fill(torch.ones_like(mask).tril(-window).bool(), float("-inf"))
        _MASKS[key] = mask
        while len(_MASKS) > _LIMIT:
            _MASKS.popitem(last=False)
    return mask  # ALSO


class PackedAttention(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.heads = heads
        self.window = window
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def scores(self, q, k, lengths):
        logits = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        return logits + get_mask(lengths, self.window, q.device)  # RAISE # ALSO

    def forward(self, x, lengths):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(0, 1) for t in self.qkv(x).chunk(3, -1))
        y = self.scores(q, k, lengths).softmax(-1) @ v
        return self.out(y.transpose(0, 1).flatten(1))


class Layer(nn.Module):
    def __init__(self, dim, heads, window):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attention = PackedAttention(dim, heads, window)

    def forward(self, x, lengths):
        x = x.to(self.norm.weight.device)
        return x + self.attention(self.norm(x), lengths)


class PackedModel(nn.Module):
    def __init__(self, vocab, dim, heads, plan, window=0):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim).to(plan[0])
        self.layers = nn.ModuleList(Layer(dim, heads, window).to(d) for d in plan)
        self.head = nn.Linear(dim, vocab).to(plan[-1])

    def forward(self, tokens, lengths):
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x, lengths)
        return self.head(x)


def pack(documents):
    return torch.tensor([t for d in documents for t in d]), [len(d) for d in documents]


def main():
    torch.manual_seed(0)
    plan = [torch.device("cuda:0")] * 2 + [torch.device("cuda:1")] * 2
    model = PackedModel(40, 16, 4, plan)
    tokens, lengths = pack([[1, 5, 9], [2, 2], [7, 8, 3, 4]])
    logits = model(tokens.to(plan[0]), lengths)
    loss = nn.functional.cross_entropy(logits[:-1], tokens[1:].to(logits.device))
    loss.backward()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
