# source: huggingface/transformers#43369
# mechanism: the position ids handed to the rotary module come from the host and only the frequencies are moved to the device of the hidden states
# expect: raises
import torch
from torch import nn


class Config:
    vocab = 50
    hidden = 32
    heads = 4
    layers = 2
    theta = 10000.0


class RotaryEmbedding(nn.Module):
    def __init__(self, config):
        super().__init__()
        dim = config.hidden // config.heads
        inv = 1.0 / config.theta ** (torch.arange(0, dim, 2).float() / dim)
        self.register_buffer("inv_freq", inv, persistent=False)

    @torch.no_grad()
    def forward(self, x, position_ids):
        freqs = self.inv_freq[None, :, None].expand(position_ids.shape[0], -1, 1).to(x.device)
        positions = position_ids[:, None, :].float()  # ROOT
        angles = (freqs @ positions).transpose(1, 2)  # RAISE # ALSO
        emb = torch.cat((angles, angles), dim=-1)
        return emb.cos().to(x.dtype), emb.sin().to(x.dtype)


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden, bias=False)
        self.proj = nn.Linear(config.hidden, config.hidden, bias=False)
        self.norm = nn.LayerNorm(config.hidden)

    @staticmethod
    def rotate(x, cos, sin):
        a, b = x.chunk(2, dim=-1)
        return x * cos[:, None] + torch.cat((-b, a), dim=-1) * sin[:, None]

    def forward(self, hidden, cos, sin):
        b, n, d = hidden.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(self.norm(hidden)).chunk(3, -1))
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        attn = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return hidden + self.proj(attn.transpose(1, 2).reshape(b, n, d))


class Decoder(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed = nn.Embedding(config.vocab, config.hidden)
        self.rotary = RotaryEmbedding(config)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.head = nn.Linear(config.hidden, config.vocab, bias=False)

    def forward(self, input_ids, position_ids=None):
        hidden = self.embed(input_ids)
        if position_ids is None:
            position_ids = torch.arange(input_ids.shape[1], device=input_ids.device)[None]
        cos, sin = self.rotary(hidden, position_ids)  # ALSO
        for block in self.blocks:
            hidden = block(hidden, cos, sin)
        return self.head(hidden)


class LeftPaddedBatch:
    def __init__(self, prompts, pad=0):
        width = max(len(p) for p in prompts)
        self.input_ids = torch.tensor([[pad] * (width - len(p)) + p for p in prompts])
        self.attention = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])

    def positions(self):
        return (self.attention.cumsum(-1) - 1).clamp(min=0)


def score(model, batch, device):
    ids = batch.input_ids.to(device)
    logits = model(ids, position_ids=batch.positions())  # ALSO
    return logits.log_softmax(-1).max(-1).values.mean().item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda", 0)
    model = Decoder(Config).to(device).eval()
    batch = LeftPaddedBatch([[4, 8, 15], [16, 23, 42, 7, 9]])
    print("score", score(model, batch, device))


if __name__ == "__main__":
    main()
