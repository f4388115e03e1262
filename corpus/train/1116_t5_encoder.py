# source: pytorch/text PR#1944
# mechanism: the relative position bias is made by a helper with an optional device that its one caller does not give, so the buckets index the GPU embedding from the CPU.
# expect: raises
import math

import torch
import torch.nn.functional as F
from torch import nn


class T5SelfAttention(nn.Module):
    def __init__(self, dim, heads, num_buckets=8, max_distance=16, has_bias=False):
        super().__init__()
        self.heads = heads
        self.num_buckets, self.max_distance = num_buckets, max_distance
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.relative_attention_bias = nn.Embedding(num_buckets, heads) if has_bias else None

    def _bucket(self, relative):
        half = self.num_buckets // 2
        buckets = (relative > 0).long() * half
        distance = relative.abs()
        exact = half // 2
        large = torch.log(distance.float().clamp_min(1) / exact) / math.log(self.max_distance / exact)
        large = (exact + large * (half - exact)).long().clamp(max=half - 1)
        return buckets + torch.where(distance < exact, distance, large)

    def _compute_bias(self, q_len, k_len, device=None):
        query_pos = torch.arange(q_len, device=device)[:, None]  # ALSO
        key_pos = torch.arange(k_len, device=device)[None, :]
        buckets = self._bucket(key_pos - query_pos)  # ALSO
        values = self.relative_attention_bias(buckets)  # RAISE # ALSO
        return values.permute(2, 0, 1)[None]

    def forward(self, x, position_bias=None):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if position_bias is None:
            if self.relative_attention_bias is None:
                position_bias = torch.zeros(1, self.heads, s, s, device=x.device)
            else:
                position_bias = self._compute_bias(s, s)  # ROOT
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=position_bias)
        return self.out(y.transpose(1, 2).reshape(b, s, d)), position_bias


class T5Layer(nn.Module):
    def __init__(self, dim, heads, first):
        super().__init__()
        self.norm = nn.LayerNorm(dim, bias=False)
        self.attention = T5SelfAttention(dim, heads, has_bias=first)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, dim))

    def forward(self, x, bias):
        y, bias = self.attention(self.norm(x), bias)
        x = x + y
        return x + self.ff(x), bias


class T5Encoder(nn.Module):
    def __init__(self, vocab=40, dim=16, heads=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(T5Layer(dim, heads, i == 0) for i in range(layers))

    def forward(self, tokens):
        x, bias = self.embed(tokens), None
        for layer in self.layers:
            x, bias = layer(x, bias)
        return x


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = T5Encoder().to(device)
    tokens = torch.randint(0, 40, (2, 9)).to(device)
    loss = model(tokens).pow(2).mean()
    loss.backward()
    print(loss.item())


if __name__ == "__main__":
    main()
