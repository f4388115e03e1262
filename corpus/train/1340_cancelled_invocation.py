# source: invoke-ai/InvokeAI#8959
# mechanism: a cancelled run drops a cached model to the CPU and leaves the record of its loaded bytes, so the next lock thinks that the tensors that must be on the GPU are there
# expect: raises
from contextlib import contextmanager

import torch
import torch.nn.functional as F
from torch import nn


class Canceled(Exception):
    pass


class AutocastLinear(nn.Linear):
    def forward(self, x):
        return F.linear(x, self.weight.to(x.device), self.bias.to(x.device))


class AutocastEmbedding(nn.Embedding):
    def forward(self, ids):
        return F.embedding(ids, self.weight.to(ids.device))


class EncoderLayer(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(dim))
        self.up = AutocastLinear(dim, 2 * dim)
        self.down = AutocastLinear(2 * dim, dim)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(x * self.scale)))  # RAISE


class TextEncoder(nn.Module):
    def __init__(self, vocab=64, dim=8, depth=2):
        super().__init__()
        self.embed = AutocastEmbedding(vocab, dim)
        self.layers = nn.ModuleList(EncoderLayer(dim) for _ in range(depth))

    def forward(self, ids, on_layer=None):
        hidden = self.embed(ids)
        for i, layer in enumerate(self.layers):
            if on_layer is not None:
                on_layer(i)
            hidden = layer(hidden)
        return hidden


class CachedModel:
    def __init__(self, model, device):
        self.model, self.device = model, torch.device(device)
        self.loaded_bytes = 0
        self.locks = 0

    def required_tensors(self):
        for module in self.model.modules():
            if not isinstance(module, (AutocastLinear, AutocastEmbedding)):
                yield from module.parameters(recurse=False)

    def load_required(self):
        total = 0
        for p in self.required_tensors():
            p.data = p.data.to(self.device)
            total += p.numel() * p.element_size()
        return total

    def lock(self):
        self.locks += 1
        if self.loaded_bytes == 0:  # ROOT
            self.loaded_bytes = self.load_required()

    def unlock(self):
        self.locks -= 1

    def drop(self):
        self.model.to("cpu")  # ALSO


class ModelCache:
    def __init__(self):
        self.entries = {}

    def put(self, key, model, device):
        self.entries[key] = CachedModel(model, device)

    @contextmanager
    def model_on_device(self, key):
        entry = self.entries[key]
        entry.lock()
        try:
            yield entry.model
        except Canceled:
            entry.drop()
            raise
        finally:
            entry.unlock()


class EncodePrompt:
    def __init__(self, cache, device):
        self.cache, self.device = cache, torch.device(device)

    @torch.no_grad()
    def invoke(self, prompt, cancel_at=None):
        def on_layer(i):
            if i == cancel_at:
                raise Canceled(f"layer {i}")

        with self.cache.model_on_device("encoder") as encoder:
            return encoder(torch.tensor([[ord(c) % 64 for c in prompt]], device=self.device), on_layer)


def process(node, queue):
    log = []
    for prompt, cancel_at in queue:
        try:
            log.append((prompt, tuple(node.invoke(prompt, cancel_at).shape)))
        except Canceled as reason:
            log.append((prompt, f"canceled at {reason}"))
    return log


if __name__ == "__main__":
    torch.manual_seed(0)
    cache = ModelCache()
    cache.put("encoder", TextEncoder().eval(), "cuda")
    queue = [("a hill", None), ("a lake", 1), ("a lake at dawn", None)]
    print(process(EncodePrompt(cache, "cuda"), queue))
