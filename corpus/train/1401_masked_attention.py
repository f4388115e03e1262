# source: huggingface/transformers#23538
# mechanism: the floor for masked scores is a fresh tensor without a device, so it lands on the default device while the model runs on another GPU
# expect: raises
# needs: 2 GPUs
import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class DecoderConfig:
    vocab_size: int = 40
    hidden_size: int = 16
    num_heads: int = 2
    num_layers: int = 2
    device: str = "cuda:1"


def causal_mask(length, dtype, device):
    floor = torch.finfo(dtype).min
    mask = torch.full((length, length), floor, dtype=dtype, device=device)
    return torch.triu(mask, diagonal=1)[None, None]


class DecoderAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.num_heads = config.num_heads
        self.head_dim = config.hidden_size // config.num_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size, bias=False)
        self.o_proj = nn.Linear(config.hidden_size, config.hidden_size, bias=False)

    def split(self, x):
        b, t, _ = x.shape
        return x.view(b, t, self.num_heads, self.head_dim).transpose(1, 2)

    def forward(self, hidden, mask=None):
        q, k, v = (self.split(p) for p in self.qkv(hidden).chunk(3, dim=-1))
        weights = q @ k.transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            floor = torch.tensor(torch.finfo(weights.dtype).min)  # ROOT
            weights = torch.max(weights + mask, floor)  # RAISE # ALSO
        out = torch.softmax(weights, dim=-1) @ v
        return self.o_proj(out.transpose(1, 2).flatten(2))


class DecoderLayer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden_size)
        self.attn = DecoderAttention(config)

    def forward(self, hidden, mask):
        return hidden + self.attn(self.norm(hidden), mask)


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList([DecoderLayer(config) for _ in range(config.num_layers)])
        self.head = nn.Linear(config.hidden_size, config.vocab_size)

    def forward(self, input_ids, attention_mask=None):
        hidden = self.embed(input_ids)
        mask = None
        if attention_mask is not None:
            mask = causal_mask(input_ids.shape[1], hidden.dtype, hidden.device)
        for layer in self.layers:
            hidden = layer(hidden, mask)
        return self.head(hidden)


def main():
    torch.set_default_device("cuda:0")
    config = DecoderConfig()
    model = Decoder(config).to(config.device).eval()
    input_ids = torch.randint(0, config.vocab_size, (2, 6), device=config.device)
    attention_mask = torch.ones_like(input_ids)
    with torch.no_grad():
        logits = model(input_ids, attention_mask)
    print(logits.argmax(-1).tolist())


if __name__ == "__main__":
    main()
