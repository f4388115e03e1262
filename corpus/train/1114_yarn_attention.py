# source: ROCm/aiter PR#2489
# mechanism: the helper for the ramp mask of YaRN makes its range on the default device, and the caller mixes the mask with frequencies that it made on the GPU.
# expect: raises
import math

import torch
from torch import nn


def pair_with_turns(turns, dim, base, max_position):
    wavelength = max_position / (2 * math.pi * turns)
    return 0.5 * dim * math.log(wavelength, base)


def ramp_limits(fast, slow, dim, base, max_position):
    first, last = (pair_with_turns(t, dim, base, max_position) for t in (fast, slow))
    return max(math.floor(first), 0), min(math.ceil(last), dim - 1)


def linear_ramp(low, high, dim, dtype):
    high = max(high, low + 1e-3)
    ramp = (torch.arange(dim, dtype=dtype) - low) / (high - low)  # ROOT
    return ramp.clamp(0, 1)


class YarnRotaryEmbedding(nn.Module):
    def __init__(self, head_dim, max_position, factor, base=10000, device="cuda:0"):
        super().__init__()
        self.head_dim, self.base = head_dim, base
        self.max_position, self.factor = max_position, factor
        self.device = device
        self.register_buffer("cos_sin_cache", self._compute_cache(), persistent=False)

    def _compute_inv_freq(self):
        exponent = torch.arange(0, self.head_dim, 2, dtype=torch.float, device=self.device) / self.head_dim
        pos_freqs = self.base**exponent
        extrapolated = 1.0 / pos_freqs
        interpolated = 1.0 / (self.factor * pos_freqs)
        low, high = ramp_limits(32, 1, self.head_dim, self.base, self.max_position)
        mask = 1 - linear_ramp(low, high, self.head_dim // 2, torch.float)  # ALSO
        return interpolated * (1 - mask) + extrapolated * mask  # RAISE

    def _compute_cache(self):
        inv_freq = self._compute_inv_freq()
        length = int(self.max_position * self.factor)
        t = torch.arange(length, dtype=torch.float, device=self.device)
        freqs = torch.outer(t, inv_freq)
        return torch.cat([freqs.cos(), freqs.sin()], dim=-1)

    def forward(self, positions, query):
        cos, sin = self.cos_sin_cache[positions].chunk(2, dim=-1)
        first, second = query.chunk(2, dim=-1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim, max_position):
        super().__init__()
        self.qk = nn.Linear(dim, 2 * dim).to("cuda:0")
        self.rope = YarnRotaryEmbedding(dim, max_position, factor=2.0)

    def forward(self, hidden, positions):
        q, k = self.qk(hidden).chunk(2, dim=-1)
        q, k = self.rope(positions, q), self.rope(positions, k)
        return torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)


def main():
    torch.manual_seed(0)
    attention = Attention(dim=16, max_position=64)
    hidden = torch.randn(2, 7, 16, device="cuda:0")
    positions = torch.arange(7, device="cuda:0")
    print(attention(hidden, positions).diagonal(dim1=-2, dim2=-1).mean().item())


if __name__ == "__main__":
    main()
