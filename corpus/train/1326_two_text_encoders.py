# source: ostris/ai-toolkit#935
# mechanism: one device, that of the first text encoder, serves for the tokens of both, and the second encoder was left on the CPU for lack of memory
# expect: raises
import tempfile
from pathlib import Path

import torch
from torch import nn


class TextModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.dense = nn.Linear(dim, dim)

    @property
    def device(self):
        return self.embedding.weight.device

    def forward(self, input_ids):
        hidden = torch.relu(self.dense(self.embedding(input_ids)))  # RAISE
        return hidden, hidden.mean(1)


class Tokenizer:
    def __init__(self, vocab, max_length):
        self.vocab, self.max_length = vocab, max_length

    def __call__(self, prompts):
        rows = []
        for prompt in prompts:
            codes = [ord(c) % (self.vocab - 1) + 1 for c in prompt][: self.max_length]
            rows.append(codes + [0] * (self.max_length - len(codes)))
        return torch.tensor(rows)


def encode_prompts(tokenizers, encoders, prompts, truncate=None):
    device = encoders[0].device
    clip_ids = tokenizers[0](prompts)
    pooled = encoders[0](clip_ids.to(device))[1]
    t5_ids = tokenizers[1](prompts)
    if truncate is not None:
        t5_ids = t5_ids[:, :truncate]
    embeds = encoders[1](t5_ids.to(device))[0]  # ROOT
    return embeds.to(device), pooled


class PromptCache:
    def __init__(self, folder):
        self.folder = Path(folder)

    def path(self, prompt):
        return self.folder / f"{abs(hash(prompt))}.pt"

    def build(self, prompts, encode):
        for prompt in prompts:
            if not self.path(prompt).exists():
                embeds, pooled = encode([prompt])
                torch.save({"embeds": embeds.cpu(), "pooled": pooled.cpu()}, self.path(prompt))

    def load(self, prompt, device):
        blob = torch.load(self.path(prompt), map_location=device)
        return blob["embeds"], blob["pooled"]


class FlowModel(nn.Module):
    def __init__(self, dim_text, dim_pool):
        super().__init__()
        self.text = nn.Linear(dim_text, 8)
        self.pool = nn.Linear(dim_pool, 8)
        self.out = nn.Linear(8, 4)

    def forward(self, noisy, embeds, pooled):
        return noisy + self.out(self.text(embeds).mean(1) + self.pool(pooled))


class Trainer:
    def __init__(self, device, low_vram):
        self.device = torch.device(device)
        self.clip = TextModel(50, 6).to(self.device)
        self.t5 = TextModel(80, 24).to("cpu" if low_vram else self.device)
        self.tokenizers = [Tokenizer(50, 8), Tokenizer(80, 16)]
        self.model = FlowModel(24, 6).to(self.device)

    @torch.no_grad()
    def encode(self, prompts):
        return encode_prompts(self.tokenizers, [self.clip, self.t5], prompts, truncate=12)

    def run(self, captions, steps):
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        with tempfile.TemporaryDirectory() as folder:
            cache = PromptCache(folder)
            cache.build(captions, self.encode)
            for step in range(steps):
                embeds, pooled = cache.load(captions[step % len(captions)], self.device)
                latents = torch.randn(1, 4, device=self.device)
                noise = torch.randn_like(latents)
                loss = (self.model(latents + noise, embeds, pooled) - noise).pow(2).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    for low_vram in (False, True):
        print(low_vram, Trainer("cuda", low_vram).run(["a red barn", "two boats"], 3))
