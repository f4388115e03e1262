# source: modelscope/twinkle#85
# mechanism: a mask of packed sequences is computed from position ids that were moved, and joined with a causal triangle that a utility makes on the CPU
# expect: raises
import torch
from torch import nn


def pack(samples):
    tokens = torch.cat(samples)
    positions = torch.cat([torch.arange(len(s)) for s in samples])
    return {"input_ids": tokens[None], "position_ids": positions[None]}


def to_device(batch, device):
    return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}


def segments(position_ids):
    return (position_ids == 0).cumsum(dim=1)


def causal_triangle(length, device=None):
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()


def build_4d_mask(position_ids, dtype):
    seg = segments(position_ids)
    same = seg[:, :, None] == seg[:, None, :]
    causal = causal_triangle(position_ids.shape[1])  # ROOT
    allowed = (same & causal).unsqueeze(1)  # RAISE # ALSO
    mask = torch.zeros(allowed.shape, dtype=dtype, device=allowed.device)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)


class Layer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, dim * 3)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, mask):
        b, t, d = x.shape
        parts = self.qkv(self.norm(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = parts.unbind(0)
        weights = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5 + mask
        out = weights.softmax(-1) @ v
        return x + self.proj(out.transpose(1, 2).reshape(b, t, d))


class PackedLM(nn.Module):
    def __init__(self, vocab=20, dim=8, heads=2, layers=2, max_len=16):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Embedding(max_len, dim)
        self.layers = nn.ModuleList([Layer(dim, heads) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, input_ids, position_ids):
        x = self.tok(input_ids) + self.pos(position_ids)
        mask = build_4d_mask(position_ids, x.dtype)
        for layer in self.layers:
            x = layer(x, mask)
        return self.head(x)


def packed_loss(logits, input_ids, position_ids):
    labels = input_ids[:, 1:].masked_fill(position_ids[:, 1:] == 0, -100)
    return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels.flatten(), ignore_index=-100)


def main():
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = PackedLM().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(2):
        samples = [torch.randint(0, 20, (n,)) for n in (4, 3, 5)]
        batch = to_device(pack(samples), device)
        loss = packed_loss(model(**batch), **batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
