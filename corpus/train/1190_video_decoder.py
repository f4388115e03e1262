# source: Comfy-Org/ComfyUI#15251
# mechanism: with partial offloading, layers cast their weights to the input's device themselves; a bare parameter of a module stays on the CPU
# expect: raises
import torch
from torch import nn
from torch.nn import functional as F


class CastLinear(nn.Linear):
    def forward(self, x):
        bias = None if self.bias is None else self.bias.to(x.device)
        return F.linear(x, self.weight.to(x.device), bias)


class CastLayerNorm(nn.LayerNorm):
    def forward(self, x):
        return F.layer_norm(x, self.normalized_shape, self.weight.to(x.device), self.bias.to(x.device), self.eps)


class TransformerBlock(nn.Module):
    def __init__(self, dim, heads=2):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = CastLayerNorm(dim), CastLayerNorm(dim)
        self.qkv = CastLinear(dim, dim * 3)
        self.proj = CastLinear(dim, dim)
        self.mlp = nn.Sequential(CastLinear(dim, dim * 2), nn.GELU(), CastLinear(dim * 2, dim))

    def forward(self, x):
        batch, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, dim // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, dim)
        x = x + self.proj(attended)
        return x + self.mlp(self.norm2(x))


class PatchDecoder(nn.Module):
    def __init__(self, latent=4, dim=8, depth=2, registers=2, patch=4):
        super().__init__()
        self.patch = patch
        self.registers = registers
        self.register_tokens = nn.Parameter(torch.randn(1, registers, dim) * 0.02)
        self.proj_in = CastLinear(latent, dim)
        self.blocks = nn.ModuleList([TransformerBlock(dim) for _ in range(depth)])
        self.proj_out = CastLinear(dim, 3 * patch * patch)

    def forward(self, z):
        batch, _, frames, height, width = z.shape
        h = self.proj_in(z.flatten(2).transpose(1, 2))
        registers = self.register_tokens.expand(batch, -1, -1)  # ROOT
        h = torch.cat([registers, h], dim=1)  # RAISE # ALSO
        for block in self.blocks:
            h = block(h)
        h = self.proj_out(h[:, self.registers:])
        h = h.view(batch, frames, height, width, 3, self.patch, self.patch)
        return h.permute(0, 4, 1, 2, 5, 3, 6).reshape(batch, 3, frames, height * self.patch, width * self.patch)


class ModelPatcher:
    def __init__(self, model, load_device, offload_device):
        self.model = model
        self.load_device = torch.device(load_device)
        self.offload_device = torch.device(offload_device)

    @staticmethod
    def module_size(module):
        return sum(p.numel() * p.element_size() for p in module.parameters(recurse=False))

    def model_size(self):
        return sum(p.numel() * p.element_size() for p in self.model.parameters())

    def partially_load(self, budget):
        if budget >= self.model_size():
            self.model.to(self.load_device)
            return self.model_size()
        used = 0
        modules = [m for m in self.model.modules() if not list(m.children()) and self.module_size(m)]
        for module in sorted(modules, key=self.module_size, reverse=True):
            if used + self.module_size(module) <= budget:
                module.to(self.load_device)
                used += self.module_size(module)
        return used

    def detach(self):
        self.model.to(self.offload_device)


class VideoVAE:
    def __init__(self, device):
        self.device = torch.device(device)
        self.decoder = PatchDecoder().eval()
        self.patcher = ModelPatcher(self.decoder, device, "cpu")

    @torch.no_grad()
    def decode(self, latents, free_memory):
        used = self.patcher.partially_load(free_memory)
        frames = self.decoder(latents.to(self.device)).sigmoid().cpu()
        self.patcher.detach()
        return frames, used


def main():
    torch.manual_seed(0)
    vae = VideoVAE("cuda:0" if torch.cuda.is_available() else "cpu")
    latents = torch.randn(1, 4, 2, 3, 3)
    for free_memory in (1 << 20, 3000):
        frames, used = vae.decode(latents, free_memory)
        print(tuple(frames.shape), "bytes on device", used, round(frames.mean().item(), 4))


if __name__ == "__main__":
    main()
