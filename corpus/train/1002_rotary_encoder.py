# source: lucidrains/rotary-embedding-torch#48
# mechanism: the angle cache is filled on the device of the first call (CPU warm-up) and is returned unchanged for later calls on the GPU
# expect: raises
import torch
from torch import nn


class AngleTable(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / base ** (torch.arange(0, dim, 2).float() / dim), persistent=False)
        self.cached = None  # ALSO
        self.cached_len = 0

    def compute(self, length):
        steps = torch.arange(length, device=self.inv_freq.device).float()
        angles = torch.outer(steps, self.inv_freq)
        return torch.cat([angles, angles], dim=-1)

    def lookup(self, length, device):
        if self.cached is not None and self.cached_len >= length:  # ALSO
            return self.cached[:length]  # ROOT
        angles = self.compute(length)
        self.cached = angles.detach()
        self.cached_len = length
        return angles


def rotate_half(x):
    left, right = x.chunk(2, dim=-1)
    return torch.cat([-right, left], dim=-1)


def apply_rotary(x, angles):
    return x * angles.cos() + rotate_half(x) * angles.sin()  # RAISE # ALSO


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.head_dim = dim // heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.rotary = AngleTable(self.head_dim)

    def split(self, x):
        b, n, _ = x.shape
        return x.view(b, n, self.heads, self.head_dim).transpose(1, 2)

    def forward(self, x):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, dim=-1))
        angles = self.rotary.lookup(x.shape[1], x.device)  # ALSO
        q, k = apply_rotary(q, angles), apply_rotary(k, angles)
        y = nn.functional.scaled_dot_product_attention(q, k, v)
        return self.out(y.transpose(1, 2).flatten(2))


class Encoder(nn.Module):
    def __init__(self, dim=32, heads=4, depth=2):
        super().__init__()
        self.layers = nn.ModuleList(SelfAttention(dim, heads) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x)
        return x


def count_flops_roughly(model, dim, length):
    with torch.no_grad():
        out = model(torch.zeros(1, length, dim))
    return out.numel() * sum(p.numel() for p in model.parameters())


def main():
    torch.manual_seed(0)
    model = Encoder()
    print("estimate", count_flops_roughly(model, 32, 16))
    model = model.to("cuda")
    batch = torch.randn(2, 12, 32, device="cuda")
    print("mean", model(batch).mean().item())


if __name__ == "__main__":
    main()
