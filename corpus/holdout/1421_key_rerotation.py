# source: NVIDIA/kvpress#240
# mechanism: keys of a layer are turned to new positions with frequencies of a rotary module that all layers share and that lives on another GPU
# expect: raises
# needs: 2 GPUs
from contextlib import contextmanager

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv, persistent=False)

    def forward(self, positions):
        freqs = positions.to(self.inv_freq.device).float()[:, None] * self.inv_freq
        emb = torch.cat([freqs, freqs], dim=-1)
        return emb.cos(), emb.sin()


def rotate_half(x):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([-b, a], dim=-1)


class Layer(nn.Module):
    def __init__(self, dim, rotary):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))
        self.__dict__["rotary"] = rotary
        self.press = None

    def forward(self, x, cos, sin):
        x, cos, sin = (t.to(self.q.weight.device) for t in (x, cos, sin))
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        out = torch.softmax(q @ k.transpose(1, 2), dim=-1) @ v
        cache = (k, v) if self.press is None else self.press.compress(self, k, v)
        return x + out, cache


class KeyRerotationPress:
    def __init__(self, ratio):
        self.ratio = ratio

    @staticmethod
    def cos_sin(inv_freq, keep):
        target = torch.arange(keep.shape[1], device=keep.device)
        delta = (target - keep).float()
        freqs = delta[..., None] * inv_freq.float()  # RAISE # ALSO
        emb = torch.cat([freqs, freqs], dim=-1)
        return emb.cos(), emb.sin()

    def rerotate(self, layer, keep, keys):
        index = keep[..., None].expand(-1, -1, keys.shape[-1])
        keys = keys.gather(1, index)
        cos, sin = self.cos_sin(layer.rotary.inv_freq, keep)  # ROOT
        return keys * cos + rotate_half(keys) * sin

    def compress(self, layer, keys, values):
        count = int(keys.shape[1] * (1 - self.ratio))
        keep = keys.norm(dim=-1).topk(count, dim=1).indices.sort(dim=1).values
        index = keep[..., None].expand(-1, -1, values.shape[-1])
        return self.rerotate(layer, keep, keys), values.gather(1, index)

    @contextmanager
    def __call__(self, model):
        for layer in model.layers:
            layer.press = self
        yield
        for layer in model.layers:
            layer.press = None


class SplitModel(nn.Module):
    def __init__(self, dim, devices):
        super().__init__()
        self.rotary = Rotary(dim).to(devices[0])
        self.layers = nn.ModuleList([Layer(dim, self.rotary).to(d) for d in devices])

    def forward(self, x):
        cos, sin = self.rotary(torch.arange(x.shape[1]))
        caches = []
        for layer in self.layers:
            x, cache = layer(x, cos, sin)
            caches.append(cache)
        return x, caches


if __name__ == "__main__":
    model = SplitModel(8, ["cuda:0", "cuda:1"]).eval()
    press = KeyRerotationPress(0.5)
    with torch.no_grad(), press(model):
        _, caches = model(torch.randn(2, 6, 8, device="cuda:0"))
    print([k.shape for k, _ in caches])
