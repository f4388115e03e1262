# source: XunhaoLai/native-sparse-attention-triton#15
# mechanism: the rotary module's buffers are made on the default argument device="cuda", which is the first GPU, while the rank's model is built on the second
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class RopeConfig:
    head_dim: int = 8
    rope_theta: float = 10000.0
    max_positions: int = 64


class RotaryEmbedding(nn.Module):
    def __init__(self, config, device="cuda"):  # ROOT
        super().__init__()
        self.config = config
        steps = torch.arange(0, config.head_dim, 2, dtype=torch.float32, device=device)  # ALSO
        inv_freq = 1.0 / config.rope_theta ** (steps / config.head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    def forward(self, x, positions):
        angles = positions[:, None].float() * self.inv_freq[None, :]  # RAISE
        emb = torch.cat([angles, angles], dim=-1)
        half = x.size(-1) // 2
        rotated = torch.cat([-x[..., half:], x[..., :half]], dim=-1)
        return x * emb.cos()[:, None] + rotated * emb.sin()[:, None]


class SparseAttention(nn.Module):
    def __init__(self, dim, heads, window, rope_config):
        super().__init__()
        self.heads, self.window = heads, window
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)
        self.gate = nn.Parameter(torch.zeros(heads))
        self.rope = RotaryEmbedding(rope_config)  # ALSO

    def local_mask(self, length, device):
        index = torch.arange(length, device=device)
        distance = index[:, None] - index[None, :]
        return (distance < 0) | (distance >= self.window)

    def forward(self, x):
        n, dim = x.shape
        q, k, v = (t.view(n, self.heads, -1) for t in self.qkv(x).chunk(3, dim=-1))
        positions = torch.arange(n, device=x.device)
        q, k = self.rope(q, positions), self.rope(k, positions)
        scores = torch.einsum("qhd,khd->hqk", q, k) / q.size(-1) ** 0.5
        scores = scores.masked_fill(self.local_mask(n, x.device), float("-inf"))
        mixed = torch.einsum("hqk,khd->qhd", scores.softmax(-1), v)
        mixed = mixed * torch.sigmoid(self.gate)[:, None]
        return self.out(mixed.reshape(n, dim))


class Model(nn.Module):
    def __init__(self, dim=16, heads=2, depth=2):
        super().__init__()
        rope_config = RopeConfig(head_dim=dim // heads)
        self.embed = nn.Embedding(40, dim)
        self.layers = nn.ModuleList(SparseAttention(dim, heads, 4, rope_config) for _ in range(depth))
        self.head = nn.Linear(dim, 40)

    def forward(self, tokens):
        hidden = self.embed(tokens)
        for layer in self.layers:
            hidden = hidden + layer(hidden)
        return self.head(hidden)


def build_on(device):
    with torch.device(device):
        return Model()


def train_rank(rank, steps=2):
    device = torch.device("cuda", rank)
    model = build_on(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        tokens = torch.randint(0, 40, (13,), device=device)
        loss = nn.functional.cross_entropy(model(tokens[:-1]), tokens[1:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    for rank in range(2):
        print("rank", rank, round(train_rank(rank), 4))
