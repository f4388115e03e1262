# source: logtd/ComfyUI-HunyuanLoom#17
# mechanism: rotary embeddings for the video grid are computed on the CPU by a helper and are handed to blocks on the GPU as they are
# expect: raises
import torch
from torch import nn


def axis_freqs(dim, size, theta=256.0):
    inv = 1.0 / theta ** (torch.arange(0, dim, 2).float() / dim)
    angles = torch.outer(torch.arange(size).float(), inv)
    return angles.repeat_interleave(2, dim=-1)


def get_rotary_pos_embed(frames, height, width, dims=(4, 2, 2)):
    parts = []
    for axis, (dim, size) in enumerate(zip(dims, (frames, height, width))):
        shape = [1, 1, 1, dim]
        shape[axis] = size
        parts.append(axis_freqs(dim, size).view(shape).expand(frames, height, width, dim))
    angles = torch.cat(parts, dim=-1).flatten(0, 2)
    return angles.cos(), angles.sin()


def apply_rotary(x, cos, sin):
    a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
    turned = torch.stack([-b, a], dim=-1).flatten(-2)
    return x * cos + turned * sin  # RAISE # ALSO


class SingleBlock(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, freqs_cos, freqs_sin, injection=None):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        q, k = apply_rotary(q, freqs_cos, freqs_sin), apply_rotary(k, freqs_cos, freqs_sin)
        if injection is not None:
            k, v = injection(k, v)
        att = torch.softmax(q @ k.transpose(1, 2) / q.shape[-1] ** 0.5, dim=-1)
        return x + self.proj(att @ v)


class VideoTransformer(nn.Module):
    def __init__(self, channels=4, dim=8, depth=2):
        super().__init__()
        self.inp = nn.Linear(channels, dim)
        self.blocks = nn.ModuleList([SingleBlock(dim) for _ in range(depth)])
        self.out = nn.Linear(dim, channels)

    def forward(self, x, t, freqs, injection=None):
        b, c, f, h, w = x.shape
        tokens = self.inp(x.flatten(2).transpose(1, 2)) + t.view(-1, 1, 1)
        freqs_cos, freqs_sin = freqs  # ALSO
        for block in self.blocks:
            tokens = block(tokens, freqs_cos, freqs_sin, injection)
        return self.out(tokens).transpose(1, 2).view(b, c, f, h, w)


class Sampler:
    def __init__(self, model, device, steps=3):
        self.model = model.to(device).eval()
        self.device = device
        self.sigmas = torch.linspace(1, 0, steps + 1)

    @torch.no_grad()
    def __call__(self, latents):
        x = latents.to(self.device)
        freqs = get_rotary_pos_embed(*x.shape[2:])  # ROOT
        for i in range(len(self.sigmas) - 1):
            t = self.sigmas[i].expand(x.shape[0]).to(x.device)
            flow = self.model(x, t, freqs)
            x = x + (self.sigmas[i + 1] - self.sigmas[i]) * flow
        return x.cpu()


if __name__ == "__main__":
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    sampler = Sampler(VideoTransformer(), device)
    print(sampler(torch.randn(1, 4, 2, 3, 3)).mean().item())
