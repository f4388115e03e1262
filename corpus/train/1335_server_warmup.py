# source: huggingface/text-generation-inference#3293
# mechanism: the server's warm-up builds its own batch with blank images on the CPU, while a request's images are moved when the batch is made from it
# expect: raises
from dataclasses import dataclass
from typing import List, Optional

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class Request:
    id: int
    text: str
    image: Optional[torch.Tensor] = None
    max_new_tokens: int = 2


@dataclass
class VlmBatch:
    request_ids: List[int]
    input_ids: torch.Tensor
    pixel_values: Optional[torch.Tensor]
    remaining: int

    @classmethod
    def from_requests(cls, requests, tokenizer, device):
        rows = [tokenizer(r.text) for r in requests]
        width = max(map(len, rows))
        input_ids = torch.tensor([[0] * (width - len(r)) + r for r in rows], device=device)
        pixels = None
        if all(r.image is not None for r in requests):
            pixels = torch.stack([r.image for r in requests]).to(device)
        remaining = max(r.max_new_tokens for r in requests)
        return cls([r.id for r in requests], input_ids, pixels, remaining)

    @classmethod
    def blank(cls, size, length, image_shape, device):
        input_ids = torch.ones(size, length, dtype=torch.long, device=device)
        pixels = torch.zeros(size, *image_shape)  # ROOT
        return cls(list(range(size)), input_ids, pixels, 1)  # ALSO


class VisionModel(nn.Module):
    def __init__(self, dim, patch=4):
        super().__init__()
        self.patch = patch
        self.weight = nn.Parameter(torch.randn(dim, 3 * patch * patch) * 0.1)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))

    def forward(self, pixels):
        patches = F.unfold(pixels, self.patch, stride=self.patch).transpose(1, 2)
        hidden = F.linear(patches, self.weight)  # RAISE
        return torch.cat([self.cls_token.expand(hidden.size(0), -1, -1), hidden], dim=1)


class LanguageModel(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)

    def forward(self, embeds):
        return self.head(self.rnn(embeds)[0])


class VlmCausalLM:
    def __init__(self, device, vocab=64, dim=12):
        self.device = torch.device(device)
        self.vision = VisionModel(dim).to(self.device).eval()
        self.language = LanguageModel(vocab, dim).to(self.device).eval()
        self.image_shape = (3, 8, 8)
        self.max_batch = None

    def tokenizer(self, text):
        return [ord(c) % 64 for c in text]

    def get_vision_embeds(self, pixel_values):
        return self.vision(pixel_values)  # ALSO

    def set_inputs_embeds(self, batch):
        embeds = self.language.embed(batch.input_ids)
        if batch.pixel_values is not None:
            embeds = torch.cat([self.get_vision_embeds(batch.pixel_values), embeds], dim=1)  # ALSO
        return embeds

    @torch.no_grad()
    def generate_token(self, batch):
        tokens = self.language(self.set_inputs_embeds(batch))[:, -1].argmax(-1, keepdim=True)
        batch.input_ids = torch.cat([batch.input_ids, tokens], dim=1)
        batch.remaining -= 1
        return tokens.flatten().tolist()

    def warmup(self, max_batch, max_length):
        batch = VlmBatch.blank(max_batch, max_length, self.image_shape, self.device)
        self.generate_token(batch)
        self.max_batch = max_batch


class Server:
    def __init__(self, model, warmup=True):
        self.model = model
        if warmup:
            model.warmup(max_batch=2, max_length=6)

    def generate(self, requests):
        batch = VlmBatch.from_requests(requests, self.model.tokenizer, self.model.device)
        outputs = []
        while batch.remaining:
            outputs.append(self.model.generate_token(batch))
        return dict(zip(batch.request_ids, zip(*outputs)))


if __name__ == "__main__":
    torch.manual_seed(0)
    requests = [Request(0, "what", torch.rand(3, 8, 8)), Request(1, "where is", torch.rand(3, 8, 8))]
    for warmup in (False, True):
        print(Server(VlmCausalLM("cuda"), warmup).generate(requests))
