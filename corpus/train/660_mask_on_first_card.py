# source: mistralai/mistral-inference#215 (fixed by PR#216; open as PR#267 for the newer code)
# mechanism: a cache on the second GPU makes its attention bias by a helper of another class, whose default is the first GPU
# phase: generation (prefill); addition of the bias to the scores
# expect: raises
# needs: 2 GPUs
from dataclasses import dataclass
from typing import List

import torch
import torch.nn as nn


@dataclass
class BlockBias:
    lengths: List[int]
    rows: torch.Tensor

    @classmethod
    def from_lengths(cls, lengths: List[int], device=None) -> "BlockBias":
        if device is None:
            device = "cuda:0" if torch.cuda.is_available() else "cpu"
        owner = [i for i, n in enumerate(lengths) for _ in range(n)]
        return cls(lengths, torch.tensor(owner, device=device))

    def materialize(self):
        keep = (self.rows[:, None] == self.rows[None, :]).tril()
        return torch.zeros(keep.shape, device=keep.device).masked_fill(~keep, float("-inf"))


@dataclass
class StepMetadata:
    positions: torch.Tensor
    mask: BlockBias


class RollingCache:
    def __init__(self, n_layers, max_len, dim):
        self.keys = [torch.zeros(max_len, dim) for _ in range(n_layers)]

    @property
    def device(self):
        return self.keys[0].device

    def to(self, device):
        self.keys = [k.to(device) for k in self.keys]
        return self

    def metadata(self, lengths):
        positions = torch.tensor([i for n in lengths for i in range(n)], device=self.device)
        mask = BlockBias.from_lengths(lengths)  # ROOT
        return StepMetadata(positions=positions, mask=mask)


class ReadingLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x, meta: StepMetadata):
        scores = self.q(x) @ self.k(x).T / x.size(-1) ** 0.5
        scores = scores + meta.mask.materialize()  # RAISE  # ALSO
        return x + scores.softmax(-1) @ self.v(x)


class ChantModel(nn.Module):
    def __init__(self, vocab=40, dim=16, n_layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layers = nn.ModuleList(ReadingLayer(dim) for _ in range(n_layers))

    def forward(self, tokens, lengths, cache):
        meta = cache.metadata(lengths)
        h = self.embed(tokens) + meta.positions[:, None] * 1e-3
        for layer in self.layers:
            h = layer(h, meta)
        return h @ self.embed.weight.T


@torch.inference_mode()
def generate(prompts, model):
    device = next(model.parameters()).device
    cache = RollingCache(len(model.layers), 32, 16).to(device)
    flat = torch.tensor(sum(prompts, []), device=device)
    logits = model(flat, [len(p) for p in prompts], cache)
    return logits.argmax(-1)


if __name__ == "__main__":
    print(generate([[3, 5, 7], [2, 4, 6, 8]], ChantModel().to("cuda:1")).tolist())
