# source: pytorch/text#2007
# mechanism: an attention computes its position bias with a helper whose device argument is None when the call leaves it out
# expect: raises
import math
from typing import Optional

import torch
from torch import Tensor, nn


class BiasedAttention(nn.Module):
    def __init__(self, dim, heads, has_bias, buckets=8, device=None):
        super().__init__()
        self.heads, self.buckets = heads, buckets
        self.qkv = nn.Linear(dim, 3 * dim, bias=False, device=device)
        self.out = nn.Linear(dim, dim, bias=False, device=device)
        self.bias = nn.Embedding(buckets, heads, device=device) if has_bias else None

    def bucket(self, relative: Tensor) -> Tensor:
        half = self.buckets // 2
        side = (relative > 0).long() * half
        dist = relative.abs()
        large = (torch.log(dist.float().clamp(min=1) + 1) / math.log(16) * half).long()
        return side + torch.where(dist < half // 2, dist, large.clamp(max=half - 1))

    def compute_bias(self, query_len, key_len, device: Optional[torch.device] = None) -> Tensor:
        query = torch.arange(query_len, dtype=torch.long, device=device)[:, None]
        key = torch.arange(key_len, dtype=torch.long, device=device)[None]
        index = self.bucket(key - query)  # ALSO
        return self.bias(index).permute(2, 0, 1).unsqueeze(0)  # RAISE # ALSO

    def forward(self, x: Tensor, position_bias: Optional[Tensor] = None):
        b, t, d = x.shape
        q, k, v = (p.view(b, t, self.heads, -1).transpose(1, 2) for p in self.qkv(x).chunk(3, -1))
        if position_bias is None:
            position_bias = self.compute_bias(t, t)  # ROOT
        att = torch.softmax(q @ k.transpose(2, 3) + position_bias, dim=-1)
        return self.out((att @ v).transpose(1, 2).reshape(b, t, d)), position_bias


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads, has_bias, device=None):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(dim, device=device), nn.LayerNorm(dim, device=device)
        self.attn = BiasedAttention(dim, heads, has_bias, device=device)
        self.ff = nn.Linear(dim, dim, device=device)

    def forward(self, x, position_bias=None):
        out, position_bias = self.attn(self.norm1(x), position_bias)
        x = x + out
        return x + torch.relu(self.ff(self.norm2(x))), position_bias


class TextEncoder(nn.Module):
    def __init__(self, vocab=20, dim=8, heads=2, layers=2, device=None):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, device=device)
        self.layers = nn.ModuleList([EncoderLayer(dim, heads, i == 0, device) for i in range(layers)])

    def forward(self, tokens):
        x, bias = self.embed(tokens), None
        for layer in self.layers:
            x, bias = layer(x, bias)
        return x


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder = TextEncoder(device=device).eval()
    tokens = torch.randint(0, 20, (2, 7), device=device)
    with torch.no_grad():
        print(encoder(tokens).mean().item())


if __name__ == "__main__":
    main()
