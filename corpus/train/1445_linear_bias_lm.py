# source: mosaicml/examples#307
# mechanism: an attention bias is built at the first forward and kept by a flag; a first forward on the CPU leaves it there after the model is moved
# expect: raises
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class MPTConfig:
    vocab_size: int = 30
    d_model: int = 8
    n_heads: int = 2
    n_layers: int = 2
    max_seq_len: int = 16
    alibi_bias_max: int = 8


def gen_slopes(n_heads, alibi_bias_max, device=None):
    power = 2 ** math.ceil(math.log2(n_heads))
    m = torch.arange(1, power + 1, device=device).float() * (alibi_bias_max / power)
    slopes = 1.0 / torch.pow(2, m)
    if power != n_heads:
        slopes = torch.cat([slopes[1::2], slopes[::2]])[:n_heads]
    return slopes.view(1, n_heads, 1, 1)


def build_alibi_bias(n_heads, seq_len, alibi_bias_max, device=None):
    distance = torch.arange(1 - seq_len, 1, device=device).float().view(1, 1, 1, seq_len)
    return distance * gen_slopes(n_heads, alibi_bias_max, device)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_heads = config.n_heads
        self.norm = nn.LayerNorm(config.d_model)
        self.qkv = nn.Linear(config.d_model, 3 * config.d_model)
        self.out = nn.Linear(config.d_model, config.d_model)

    def forward(self, x, bias):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.n_heads, -1).permute(2, 0, 3, 1, 4)
        weights = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        weights = weights + bias[..., -t:]  # RAISE
        causal = torch.ones(t, t, dtype=torch.bool, device=x.device).tril()
        weights = weights.masked_fill(~causal, -1e9)
        return x + self.out((weights.softmax(-1) @ v).transpose(1, 2).flatten(2))


class MPTModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.d_model)
        self.blocks = nn.ModuleList([Block(config) for _ in range(config.n_layers)])
        self.norm = nn.LayerNorm(config.d_model)
        self._bias_ready = False
        self.bias = None  # ALSO

    def attn_bias(self, device):
        if not self._bias_ready:  # ALSO
            c = self.config
            self.bias = build_alibi_bias(c.n_heads, c.max_seq_len, c.alibi_bias_max, device)
            self._bias_ready = True
        return self.bias  # ROOT

    def forward(self, ids):
        x = self.wte(ids)
        bias = self.attn_bias(x.device)  # ALSO
        for block in self.blocks:
            x = block(x, bias)
        return self.norm(x) @ self.wte.weight.T


def count_flops(model, length):
    total = sum(p.numel() for p in model.parameters())
    with torch.no_grad():
        out = model(torch.zeros(1, length, dtype=torch.long))
    return 2 * total * length + out.numel()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = MPTModel(MPTConfig())
    print("flops", count_flops(model, 8))
    model.to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ids = torch.randint(0, 30, (2, 10)).to(device)
    loss = nn.functional.cross_entropy(model(ids)[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
