# source: wingedsheep/transformer#4
# mechanism: a function computes the positional table anew from Python numbers on each forward, on the CPU, and it is added to embeddings on the GPU
# expect: raises
import math

import torch
from torch import nn


def get_device():
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def positional_encoding(length, dim):
    rows = []
    for pos in range(length):
        angles = [pos / 10000 ** (2 * (i // 2) / dim) for i in range(dim)]
        rows.append([math.sin(a) if i % 2 == 0 else math.cos(a) for i, a in enumerate(angles)])
    return torch.tensor(rows, dtype=torch.float32)  # ROOT


class Embedder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.dim = dim
        self.table = nn.Embedding(vocab, dim)

    def forward(self, ids):
        x = self.table(ids) * math.sqrt(self.dim)
        return x + positional_encoding(ids.shape[1], self.dim)  # RAISE # ALSO


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(dim, 2 * dim), nn.GELU(), nn.Linear(2 * dim, dim))
        self.n1, self.n2 = nn.LayerNorm(dim), nn.LayerNorm(dim)

    def forward(self, x, mask):
        h = self.n1(x)
        x = x + self.attn(h, h, h, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.n2(x))


class GPT(nn.Module):
    def __init__(self, vocab, dim=16, heads=2, layers=2):
        super().__init__()
        self.embed = Embedder(vocab, dim)
        self.blocks = nn.ModuleList([DecoderBlock(dim, heads) for _ in range(layers)])
        self.head = nn.Linear(dim, vocab)

    def forward(self, ids):
        n = ids.shape[1]
        mask = torch.ones(n, n, dtype=torch.bool, device=ids.device).triu(1)
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x, mask)
        return self.head(x)


class Trainer:
    def __init__(self, model, lr=1e-3):
        self.model = model.to(get_device())
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)

    def train(self, data):
        losses = []
        for batch in data:
            batch = batch.to(get_device())
            logits = self.model(batch[:, :-1])
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), batch[:, 1:].flatten())
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            losses.append(loss.item())
        return losses


def main():
    torch.manual_seed(0)
    data = [torch.randint(0, 11, (3, 8)) for _ in range(2)]
    print(Trainer(GPT(11)).train(data))


if __name__ == "__main__":
    main()
