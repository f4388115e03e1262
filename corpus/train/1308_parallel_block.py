# source: FearL0rd/ComfyUI-ParallelAnything#3
# mechanism: the wrapper that sends a block's input to its GPU moves the first argument only, and the conditioning that comes by keyword stays on the lead GPU
# expect: raises
# needs: 2 GPUs
import math

import torch
from torch import nn


class TimestepEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim
        self.proj = nn.Linear(dim, dim)

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(1000) * torch.arange(half, device=t.device) / half)
        args = t[:, None].float() * freqs[None]
        return self.proj(torch.cat([args.cos(), args.sin()], dim=-1))


class DiTBlock(nn.Module):
    def __init__(self, dim, ctx_dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim, elementwise_affine=False)
        self.modulation = nn.Linear(dim, 2 * dim)
        self.cross = nn.Linear(ctx_dim, dim)
        self.mlp = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))

    def forward(self, x, vec=None, context=None):
        scale, shift = self.modulation(vec).unsqueeze(1).chunk(2, dim=-1)  # RAISE
        x = x + self.cross(context).mean(1, keepdim=True)
        return x + self.mlp(self.norm(x) * (1 + scale) + shift)


class DiT(nn.Module):
    def __init__(self, channels=4, dim=16, ctx_dim=8, depth=4):
        super().__init__()
        self.img_in = nn.Linear(channels, dim)
        self.time_in = TimestepEmbedding(dim)
        self.blocks = nn.ModuleList(DiTBlock(dim, ctx_dim) for _ in range(depth))
        self.final = nn.Linear(dim, channels)

    def forward(self, x, t, context):
        hidden = self.img_in(x)
        vec = self.time_in(t)
        for block in self.blocks:
            hidden = block(hidden, vec=vec, context=context)
        return self.final(hidden)


class ParallelBlock(nn.Module):
    def __init__(self, block, device, lead_device, is_last):
        super().__init__()
        self.block = block.to(device)
        self.device, self.lead_device, self.is_last = device, lead_device, is_last

    def forward(self, x, *args, **kwargs):
        x = x.to(self.device)
        out = self.block(x, *args, **kwargs)  # ROOT
        return out.to(self.lead_device) if self.is_last else out


def split_blocks(model, devices):
    lead = devices[0]
    model.to(lead)
    depth = len(model.blocks)
    per_device = math.ceil(depth / len(devices))
    wrapped = [
        ParallelBlock(block, devices[i // per_device], lead, i == depth - 1)
        for i, block in enumerate(model.blocks)
    ]
    model.blocks = nn.ModuleList(wrapped)
    return model


@torch.no_grad()
def sample(model, latent, context, steps, device):
    latent, context = latent.to(device), context.to(device)
    for i in reversed(range(1, steps + 1)):
        t = torch.full((latent.size(0),), i, device=device)
        latent = latent - model(latent, t, context) / steps
    return latent.cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    model = split_blocks(DiT(), ["cuda:0", "cuda:1"])
    result = sample(model, torch.randn(1, 6, 4), torch.randn(1, 3, 8), 2, "cuda:0")
    print(result.mean().item())
