# source: huggingface/transformers PR#27931
# mechanism: the causal mask is a buffer of the length in the config; for a longer input it is registered again in the forward pass, this time made on the CPU.
# expect: raises
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class ModelConfig:
    vocab_size: int = 28
    hidden_size: int = 16
    num_heads: int = 2
    max_position_embeddings: int = 8


def full_mask(length, **kwargs):
    return torch.full((length, length), 1.0, **kwargs).triu(diagonal=1)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.heads = config.num_heads
        self.qkv = nn.Linear(config.hidden_size, 3 * config.hidden_size)
        self.out = nn.Linear(config.hidden_size, config.hidden_size)

    def forward(self, x, mask):
        b, s, d = x.shape
        q, k, v = self.qkv(x).view(b, s, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, s, d))


class CausalModel(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.attention = Attention(config)
        self.norm = nn.LayerNorm(config.hidden_size)
        self.register_buffer("causal_mask", full_mask(config.max_position_embeddings), persistent=False)

    def update_causal_mask(self, attention_mask, x):
        length = x.shape[1]
        if length > self.causal_mask.shape[-1]:
            self.register_buffer("causal_mask", full_mask(2 * length), persistent=False)  # ROOT
        low = torch.finfo(x.dtype).min
        mask = self.causal_mask[None, None, :length, :length].to(x.dtype) * low  # ALSO
        mask = mask.repeat(x.shape[0], 1, 1, 1)  # ALSO
        if attention_mask is not None:
            hidden = (mask == 0) & (attention_mask[:, None, None, :] == 0)  # RAISE
            mask = mask.masked_fill(hidden, low)
        return mask

    def forward(self, input_ids, attention_mask=None):
        x = self.embed(input_ids)
        mask = self.update_causal_mask(attention_mask, x)
        return self.norm(x + self.attention(x, mask))


class ForCausalLM(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = CausalModel(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids, attention_mask=None):
        return self.lm_head(self.model(input_ids, attention_mask))


def encode(lengths, pad=0):
    width = max(lengths)
    ids = torch.randint(1, 28, (len(lengths), width))
    mask = torch.tensor([[1] * n + [pad] * (width - n) for n in lengths])
    return {"input_ids": ids * mask, "attention_mask": mask}


@torch.no_grad()
def score(model, batch, device):
    batch = {k: v.to(device) for k, v in batch.items()}
    logprobs = model(**batch)[:, :-1].log_softmax(-1)
    targets = batch["input_ids"][:, 1:]
    picked = logprobs.gather(2, targets[..., None]).squeeze(-1)
    return (picked * batch["attention_mask"][:, 1:]).sum(dim=1).tolist()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = ForCausalLM(ModelConfig()).to(device).eval()
    for lengths in ([5, 7], [8, 3], [11, 6]):
        print(lengths, score(model, encode(lengths), device))


if __name__ == "__main__":
    main()
