# source: ModelCloud/GPTQModel#2453
# mechanism: layers are quantized in turns on two GPUs, and a rotary module that is kept for all of them stays on the GPU of the first
# expect: raises
# needs: 2 GPUs
import copy

import torch
from torch import nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000.0):
        super().__init__()
        inv = 1.0 / base ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv, persistent=False)

    def forward(self, x):
        pos = torch.arange(x.shape[1], device=x.device).float()
        freqs = torch.outer(pos, self.inv_freq)  # RAISE # ALSO
        emb = torch.cat([freqs, freqs], dim=-1)
        return emb.cos(), emb.sin()


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim, bias=False)
        self.o_proj = nn.Linear(dim, dim, bias=False)

    def forward(self, x, position_embeddings):
        cos, sin = position_embeddings
        q = self.q_proj(x)
        a, b = q.chunk(2, dim=-1)
        return x + self.o_proj(q * cos + torch.cat([-b, a], dim=-1) * sin)


class Model(nn.Module):
    def __init__(self, vocab=20, dim=8, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rotary = RotaryEmbedding(dim)
        self.layers = nn.ModuleList([Block(dim) for _ in range(layers)])


def quantize_weight(weight, bits=4):
    scale = weight.abs().amax(dim=1, keepdim=True) / (2 ** (bits - 1) - 1)
    return (weight / scale).round() * scale


class LayerProcessor:
    def __init__(self, model, devices, bits=4):
        self.model, self.bits = model, bits
        self.devices = [torch.device(d) for d in devices]
        self._rotary = {}

    def rotary_for(self, device):
        key = "rotary"  # ROOT
        if key not in self._rotary:  # ALSO
            self._rotary[key] = copy.deepcopy(self.model.rotary).to(device)
        return self._rotary[key]  # ALSO

    def search(self, layer, inputs, embeddings):
        reference = layer(inputs, embeddings)
        for name in ("q_proj", "o_proj"):
            linear = getattr(layer, name)
            linear.weight.data = quantize_weight(linear.weight.data, self.bits)
        return (layer(inputs, embeddings) - reference).pow(2).mean().item()

    @torch.no_grad()
    def run(self, token_ids):
        hidden = self.model.embed(token_ids)
        errors = []
        for i, layer in enumerate(self.model.layers):
            device = self.devices[i % len(self.devices)]
            layer.to(device)
            hidden = hidden.to(device)
            rotary = self.rotary_for(device)
            embeddings = rotary(hidden)
            errors.append(self.search(layer, hidden, embeddings))
            hidden = layer(hidden, embeddings).cpu()
            layer.cpu()
        return errors


def main():
    model = Model().eval()
    processor = LayerProcessor(model, ["cuda:0", "cuda:1"])
    calibration = torch.randint(0, 20, (2, 6))
    for i, error in enumerate(processor.run(calibration)):
        print(f"layer {i}: {error:.6f}")


if __name__ == "__main__":
    main()
