# source: LMCache/LMCache-Ascend#71
# mechanism: a self check of a rotary kernel looks up the model's table of cosines and sines with positions that are made on the CPU
# expect: raises
import torch
from torch import nn


class RotaryTable(nn.Module):
    def __init__(self, head_dim, max_position=64, base=10000.0):
        super().__init__()
        inv = 1.0 / base ** (torch.arange(0, head_dim, 2).float() / head_dim)
        freqs = torch.outer(torch.arange(max_position).float(), inv)
        self.register_buffer("cos_sin", torch.cat([freqs.cos(), freqs.sin()], dim=-1))

    def forward(self, positions, query, key):
        cos, sin = self.cos_sin.index_select(0, positions).chunk(2, dim=-1)  # RAISE # ALSO
        return rotate(query, cos, sin), rotate(key, cos, sin)


def rotate(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class FusedRope:
    """Moves cached keys from the position they were computed at to a new one."""

    def __init__(self, rope: RotaryTable):
        self.rope = rope

    def _lookup(self, positions):
        table = self.rope.cos_sin
        return table[positions.to(table.device)].chunk(2, dim=-1)

    def __call__(self, old, new, key):
        old_cos, old_sin = self._lookup(old)
        new_cos, new_sin = self._lookup(new)
        plain = rotate(key, old_cos, -old_sin)
        return rotate(plain, new_cos, new_sin)


def check_accuracy(rope, fused, head_dim, length=16, shift=5):
    device = rope.cos_sin.device
    key = torch.rand(length, head_dim, device=device)
    query = torch.rand(length, head_dim, device=device)
    old = torch.arange(length)  # ROOT
    new = old + shift
    _, expected = rope(new, query, key)
    _, before = rope(old, query, key)
    moved = fused(old, new, before)
    return (moved - expected).abs().max().item() < 1e-4


def get_fused_rope(head_dim, device):
    rope = RotaryTable(head_dim).to(device)
    fused = FusedRope(rope)
    if not check_accuracy(rope, fused, head_dim):
        raise RuntimeError("the fused kernel does not agree with the model's embedding")
    return fused


class KeyStore:
    def __init__(self, device):
        self.device = device
        self.chunks = {}

    def put(self, name, positions, key):
        self.chunks[name] = (positions.cpu(), key.cpu())

    def get(self, name):
        positions, key = self.chunks[name]
        return positions.to(self.device), key.to(self.device)


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    fused = get_fused_rope(8, device)
    store = KeyStore(device)
    store.put("doc", torch.arange(4), torch.randn(4, 8))
    positions, key = store.get("doc")
    print(fused(positions, positions + 10, key).shape)


if __name__ == "__main__":
    main()
