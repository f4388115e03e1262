# source: huggingface/transformers#45859
# mechanism: CPU offload brings the parameters of a module to the GPU for its forward but not its buffers, so the M-RoPE frequencies meet GPU positions in a matmul.
# expect: raises
import contextlib

import torch
from torch import nn


class MultimodalRotary(nn.Module):
    def __init__(self, head_dim, sections=(2, 1, 1)):
        super().__init__()
        inv_freq = 1.0 / 10000 ** (torch.arange(0, head_dim, 2).float() / head_dim)
        self.register_buffer("inv_freq", inv_freq, persistent=False)
        self.sections = sections

    def forward(self, x, position_ids):
        freq = self.inv_freq[None, None, :, None].expand(3, position_ids.shape[1], -1, 1)  # ROOT
        pos = position_ids[:, :, None, :].float()
        angles = (freq.float() @ pos).transpose(2, 3)  # RAISE # ALSO
        parts = [a[i % 3] for i, a in enumerate(angles.split(list(self.sections), dim=-1))]
        emb = torch.cat(parts * 2, dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


class DecoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))

    def forward(self, x, rope):
        cos, sin = rope
        h = self.norm(x)
        h = h * cos + h.roll(1, -1) * sin
        return x + self.mlp(h)


class VisionLanguageDecoder(nn.Module):
    def __init__(self, vocab=20, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rotary = MultimodalRotary(dim)
        self.layers = nn.ModuleList(DecoderLayer(dim) for _ in range(2))

    def forward(self, input_ids, position_ids):
        x = self.embed(input_ids)
        rope = self.rotary(x, position_ids)
        for layer in self.layers:
            x = layer(x, rope)
        return x


class CPUOffload:
    def __init__(self, module, device):
        self.module, self.device = module, device
        module.to("cpu")  # ALSO

    @contextlib.contextmanager
    def onloaded(self):
        host = {n: p.data for n, p in self.module.named_parameters()}
        for param in self.module.parameters():  # ALSO
            param.data = param.data.to(self.device)
        yield self.module
        for name, param in self.module.named_parameters():
            param.data = host[name]

    @torch.no_grad()
    def __call__(self, **batch):
        batch = {k: v.to(self.device) for k, v in batch.items()}
        with self.onloaded() as module:
            return module(**batch).cpu()


def grid_positions(batch, length):
    steps = torch.arange(length)
    return torch.stack([steps, steps // 2, steps % 2])[:, None].expand(3, batch, length)


def main():
    torch.manual_seed(0)
    runner = CPUOffload(VisionLanguageDecoder().eval(), torch.device("cuda:0"))
    ids = torch.randint(0, 20, (2, 5))
    out = runner(input_ids=ids, position_ids=grid_positions(2, 5))
    print(out.norm().item())


if __name__ == "__main__":
    main()
