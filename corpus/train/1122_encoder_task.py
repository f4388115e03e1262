# source: facebookresearch/fairseq PR#745
# mechanism: the table of sinusoids is a plain attribute that is rebuilt on demand; it takes over the type of a reference buffer, but not its device.
# expect: raises
import math

import torch
from torch import nn


class SinusoidalPositionalEmbedding(nn.Module):
    def __init__(self, dim, padding_idx, init_size=16):
        super().__init__()
        self.dim, self.padding_idx = dim, padding_idx
        self.weights = self.get_embedding(init_size, dim, padding_idx)
        self.register_buffer("_float_tensor", torch.zeros(1))

    @staticmethod
    def get_embedding(count, dim, padding_idx):
        half = dim // 2
        scale = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
        angles = torch.arange(count).float()[:, None] * scale[None]
        table = torch.cat([angles.sin(), angles.cos()], dim=1)
        table[padding_idx] = 0
        return table

    def positions(self, tokens):
        mask = tokens.ne(self.padding_idx).long()
        return mask.cumsum(dim=1) * mask + self.padding_idx

    def forward(self, tokens):
        longest = self.padding_idx + 1 + tokens.shape[1]
        if longest > self.weights.shape[0]:
            self.weights = self.get_embedding(longest, self.dim, self.padding_idx)
        self.weights = self.weights.to(self._float_tensor.dtype)  # ROOT
        positions = self.positions(tokens)
        rows = self.weights.index_select(0, positions.view(-1))  # RAISE # ALSO
        return rows.view(*tokens.shape, self.dim)


class TransformerEncoder(nn.Module):
    def __init__(self, vocab=30, dim=16, padding_idx=1):
        super().__init__()
        self.padding_idx = padding_idx
        self.embed = nn.Embedding(vocab, dim, padding_idx=padding_idx)
        self.embed_positions = SinusoidalPositionalEmbedding(dim, padding_idx)
        self.layer = nn.TransformerEncoderLayer(dim, 2, 32, dropout=0.0, batch_first=True)

    def forward(self, tokens):
        x = self.embed(tokens) + self.embed_positions(tokens)
        return self.layer(x, src_key_padding_mask=tokens.eq(self.padding_idx))


def collate(samples, pad):
    width = max(len(s) for s in samples)
    return torch.tensor([s + [pad] * (width - len(s)) for s in samples])


class Task:
    def __init__(self, device):
        self.device = device
        self.model = TransformerEncoder().to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def train_step(self, samples):
        tokens = collate(samples, self.model.padding_idx).to(self.device)
        loss = self.model(tokens)[tokens.ne(self.model.padding_idx)].pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    task = Task(torch.device("cuda:0"))
    print(task.train_step([[4, 5, 6, 2], [7, 2]]))
    print(task.train_step([list(range(4, 24)), [7, 8, 2]]))


if __name__ == "__main__":
    main()
