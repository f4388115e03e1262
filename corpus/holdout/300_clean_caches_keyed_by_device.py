# source: none: a correct program
# mechanism: none; caches whose key holds the device, filled by a dry run on the CPU too, and a function's own cache
# phase: n/a
# expect: clean
# needs: 2 GPUs
import functools

import torch

devices = [torch.device("cpu"), torch.device("cuda", 0), torch.device("cuda", 1)]


@functools.lru_cache(maxsize=None)
def window_mask(length, window, device):
    distance = torch.arange(length, device=device)[:, None] - torch.arange(length, device=device)
    return (distance < 0) | (distance >= window)


class Rotary(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, width, 2) / width), persistent=False)
        self.cache = {}

    def forward(self, x):
        key = (x.shape[1], x.device)
        if key not in self.cache:
            self.cache[key] = torch.outer(torch.arange(x.shape[1], device=x.device), self.frequencies)
        angles = self.cache[key]
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.cat([even * angles.cos() - odd * angles.sin(), even * angles.sin() + odd * angles.cos()], -1)


class Attention(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix, self.rotary = torch.nn.Linear(width, 3 * width), Rotary(width)

    def forward(self, x):
        query, key, value = self.mix(x).chunk(3, -1)
        scores = self.rotary(query) @ self.rotary(key).transpose(-1, -2)
        return scores.masked_fill(window_mask(x.shape[1], 3, x.device), float("-inf")).softmax(-1) @ value


model = Attention(4)
with torch.no_grad():
    for device in devices:
        for length in (5, 7, 5):
            assert model.to(device)(torch.randn(2, length, 4, device=device)).device == device
