# source: huggingface/transformers#32543
# mechanism: each layer of a static cache lies on its layer's GPU, and the cache position, made once on the GPU of the embedding, indexes all of them
# expect: raises
# needs: 2 GPUs
import math

import torch
from torch import nn


class StaticCache:
    def __init__(self, layer_devices, batch, heads, max_len, head_dim):
        self.max_len = max_len
        self.keys = [torch.zeros(batch, heads, max_len, head_dim, device=d) for d in layer_devices]
        self.values = [torch.zeros(batch, heads, max_len, head_dim, device=d) for d in layer_devices]

    def update(self, key, value, layer_idx, cache_position):
        k_out, v_out = self.keys[layer_idx], self.values[layer_idx]  # ROOT
        k_out.index_copy_(2, cache_position, key)  # RAISE
        v_out.index_copy_(2, cache_position, value)
        return k_out, v_out


class Attention(nn.Module):
    def __init__(self, dim, heads, layer_idx):
        super().__init__()
        self.heads, self.layer_idx = heads, layer_idx
        self.qkv = nn.Linear(dim, dim * 3)
        self.out = nn.Linear(dim, dim)

    def forward(self, hidden, mask, cache, cache_position):
        b, t, d = hidden.shape
        q, k, v = (x.view(b, t, self.heads, -1).transpose(1, 2) for x in self.qkv(hidden).chunk(3, -1))
        k, v = cache.update(k, v, self.layer_idx, cache_position)  # ALSO
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)) + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(b, t, d))


class Layer(nn.Module):
    def __init__(self, dim, heads, layer_idx):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.attn = Attention(dim, heads, layer_idx)

    def forward(self, hidden, mask, cache, cache_position):
        return hidden + self.attn(self.norm(hidden), mask, cache, cache_position)


class CausalLM(nn.Module):
    def __init__(self, vocab, dim, heads, devices):
        super().__init__()
        self.layer_devices = devices
        self.heads, self.head_dim = heads, dim // heads
        self.embed = nn.Embedding(vocab, dim).to(devices[0])
        self.layers = nn.ModuleList(Layer(dim, heads, i).to(d) for i, d in enumerate(devices))
        self.head = nn.Linear(dim, vocab).to(devices[-1])

    def causal_mask(self, cache_position, max_len):
        slots = torch.arange(max_len, device=cache_position.device)
        blocked = slots[None, :] > cache_position[:, None]
        return torch.zeros(blocked.shape, device=blocked.device).masked_fill(blocked, -1e9)

    def forward(self, input_ids, cache, cache_position):
        hidden = self.embed(input_ids)
        mask = self.causal_mask(cache_position, cache.max_len)
        for layer, device in zip(self.layers, self.layer_devices):
            hidden = layer(hidden.to(device), mask.to(device), cache, cache_position)  # ALSO
        return self.head(hidden)

    @torch.no_grad()
    def generate(self, input_ids, new_tokens):
        total = input_ids.size(1) + new_tokens
        cache = StaticCache(self.layer_devices, input_ids.size(0), self.heads, total, self.head_dim)
        position = torch.arange(input_ids.size(1), device=input_ids.device)
        step = input_ids
        for _ in range(new_tokens):
            logits = self(step, cache, position)
            step = logits[:, -1].argmax(-1, keepdim=True).to(input_ids.device)
            input_ids = torch.cat([input_ids, step], dim=1)
            position = position[-1:] + 1
        return input_ids


def main():
    torch.manual_seed(0)
    model = CausalLM(50, 16, 2, ["cuda:0", "cuda:0", "cuda:1", "cuda:1"])
    prompt = torch.randint(0, 50, (2, 4), device="cuda:0")
    print(model.generate(prompt, 3).tolist())


if __name__ == "__main__":
    main()
