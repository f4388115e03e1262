# source: mosaicml/llm-foundry PR#1334
# mechanism: one rotary module is shared by layers on two devices, and its frequencies stay where the module was dispatched when a layer of the other device calls it.
# needs: 2 GPUs
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim, base=10000.0):
        super().__init__()
        inv_freq = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        angles = position_ids[:, :, None].float() * self.inv_freq  # RAISE # ROOT
        emb = torch.cat([angles, angles], dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


def rotate_half(x):
    first, second = x.chunk(2, dim=-1)
    return torch.cat([-second, first], dim=-1)


class RopeAttention(nn.Module):
    def __init__(self, dim, heads, rotary):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.rotary = [rotary]

    def forward(self, x, position_ids):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        cos, sin = self.rotary[0](x, position_ids)  # ALSO
        cos, sin = cos[:, None], sin[:, None]
        q = q * cos + rotate_half(q) * sin
        k = k * cos + rotate_half(k) * sin
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, s, d))


class Block(nn.Module):
    def __init__(self, dim, heads, rotary):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = RopeAttention(dim, heads, rotary)

    def forward(self, x, position_ids):
        return x + self.attn(self.norm(x), position_ids)


class FoundryLM(nn.Module):
    def __init__(self, vocab=20, dim=16, heads=2, layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rotary = RotaryEmbedding(dim // heads)
        self.blocks = nn.ModuleList(Block(dim, heads, self.rotary) for _ in range(layers))
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids):
        position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        x = self.embed(input_ids)
        for block in self.blocks:
            device = block.norm.weight.device
            x, position_ids = x.to(device), position_ids.to(device)  # ALSO
            x = block(x, position_ids)
        return self.head(x.to(self.head.weight.device))


def balanced_dispatch(model, devices):
    model.embed.to(devices[0])
    model.rotary.to(devices[0])
    for index, block in enumerate(model.blocks):
        block.to(devices[index * len(devices) // len(model.blocks)])
    model.head.to(devices[-1])
    return model


def main():
    torch.manual_seed(0)
    model = balanced_dispatch(FoundryLM(), ["cuda:0", "cuda:1"]).eval()
    ids = torch.randint(0, 20, (2, 6), device="cuda:0")
    with torch.no_grad():
        print(model(ids).argmax(-1).cpu().tolist())


if __name__ == "__main__":
    main()
