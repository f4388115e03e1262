# source: vladmandic/sdnext#4887
# mechanism: the prompt's embeddings are parked on the CPU between two stages, and the second stage hands them, as they lie, to connectors that stay on the GPU
# expect: raises
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Options:
    device: str = "cuda"
    offload_mode: str = "none"
    refine: bool = True
    steps: int = 2


class TextEncoder(nn.Module):
    def __init__(self, vocab=64, dim=16):
        super().__init__()
        self.table = nn.Embedding(vocab, dim)

    def forward(self, ids):
        return self.table(ids)


class Transformer(nn.Module):
    def __init__(self, channels=4, dim=16):
        super().__init__()
        self.connectors = nn.Linear(dim, channels)
        self.mix = nn.Linear(channels, channels)

    def forward(self, latents, embeds, mask):
        context = self.connectors(embeds)  # RAISE
        weights = mask.to(context.dtype)[..., None]
        pooled = (context * weights).sum(1, keepdim=True) / weights.sum(1, keepdim=True)
        return latents + torch.tanh(self.mix(latents) + pooled)


class VideoPipeline:
    def __init__(self, device):
        self.device = torch.device(device)
        self.text_encoder = TextEncoder().to(self.device)
        self.transformer = Transformer().to(self.device)

    def encode_prompt(self, prompt):
        ids = torch.tensor([[ord(c) % 64 for c in prompt]], device=self.device)
        return self.text_encoder(ids), torch.ones_like(ids)

    def __call__(self, steps, latents=None, prompt=None, prompt_embeds=None, prompt_mask=None):
        if prompt_embeds is None:
            prompt_embeds, prompt_mask = self.encode_prompt(prompt)
        if latents is None:
            latents = torch.randn(1, 6, 4, device=self.device)
        latents = latents.to(self.device)
        for _ in range(steps):
            latents = self.transformer(latents, prompt_embeds, prompt_mask)  # ALSO
        return latents


@dataclass
class PromptState:
    tensors: dict = field(default_factory=dict)

    def park(self, device="cpu"):
        self.tensors = {k: v.to(device) for k, v in self.tensors.items()}

    def as_kwargs(self):
        return dict(self.tensors)


def upsample(latents):
    return nn.functional.interpolate(latents.transpose(1, 2), scale_factor=2.0).transpose(1, 2)


@torch.no_grad()
def process(pipeline, prompt, opts):
    embeds, mask = pipeline.encode_prompt(prompt)
    state = PromptState({"prompt_embeds": embeds, "prompt_mask": mask})
    latents = pipeline(opts.steps, **state.as_kwargs())
    state.park()
    latents = latents.cpu()
    if opts.refine:
        latents = upsample(latents)
        kwargs = state.as_kwargs()  # ROOT
        latents = pipeline(opts.steps, latents=latents, **kwargs)  # ALSO
    return latents.cpu()


def main():
    torch.manual_seed(0)
    for refine in (False, True):
        opts = Options(refine=refine)
        pipeline = VideoPipeline(opts.device)
        print(refine, process(pipeline, "waves at night", opts).shape)


if __name__ == "__main__":
    main()
