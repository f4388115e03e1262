# source: Lightning-AI/litgpt PR#814
# mechanism: setting a longer maximum length on a model that is already on the GPU builds its tables of cosines and sines anew, without the device of the old ones.
# expect: raises
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Config:
    block_size: int = 32
    vocab_size: int = 40
    n_embd: int = 16
    n_head: int = 2


def rotary_tables(length, dim, device=None, base=10000):
    theta = 1.0 / base ** (torch.arange(0, dim, 2, device=device).float() / dim)
    angles = torch.outer(torch.arange(length, device=device).float(), theta).repeat(1, 2)
    return angles.cos(), angles.sin()


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.n_head = config.n_head
        self.attn = nn.Linear(config.n_embd, 3 * config.n_embd)
        self.proj = nn.Linear(config.n_embd, config.n_embd)

    def forward(self, x, cos, sin):
        b, t, c = x.shape
        q, k, v = self.attn(x).view(b, t, 3, self.n_head, -1).permute(2, 0, 3, 1, 4)
        q = q * cos + q.roll(q.shape[-1] // 2, -1) * sin  # RAISE
        k = k * cos + k.roll(k.shape[-1] // 2, -1) * sin
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(y.transpose(1, 2).reshape(b, t, c))


class GPT(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.wte = nn.Embedding(config.vocab_size, config.n_embd)
        self.attn = Attention(config)
        self.lm_head = nn.Linear(config.n_embd, config.vocab_size)
        self.context_length = config.block_size // 4

    @property
    def context_length(self):
        return self._context

    @context_length.setter
    def context_length(self, value):
        if value > self.config.block_size:
            raise ValueError(f"at most {self.config.block_size} positions")
        self._context = value
        if not hasattr(self, "rope_cos"):
            cos, sin = self.make_tables()
            self.register_buffer("rope_cos", cos, persistent=False)
            self.register_buffer("rope_sin", sin, persistent=False)
        elif value != self.rope_cos.size(0):
            self.rope_cos, self.rope_sin = self.make_tables()  # ROOT

    def make_tables(self, device=None):
        return rotary_tables(self.context_length, self.config.n_embd // self.config.n_head, device)  # ALSO

    def forward(self, idx):
        t = idx.shape[1]
        x = self.wte(idx)
        cos, sin = self.rope_cos[:t], self.rope_sin[:t]
        x = x + self.attn(x, cos, sin)
        return self.lm_head(x)


@torch.no_grad()
def generate(model, prompt, max_returned_tokens):
    model.context_length = max_returned_tokens
    tokens = prompt
    while tokens.shape[1] < max_returned_tokens:
        tokens = torch.cat([tokens, model(tokens)[:, -1:].argmax(-1)], dim=1)
    return tokens


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0")
    model = GPT(Config()).to(device).eval()
    prompt = torch.tensor([[5, 11, 3]], device=device)
    print(generate(model, prompt, 8).tolist())
    print(generate(model, prompt, 12).tolist())


if __name__ == "__main__":
    main()
