# source: lanyunshi/Multi-hopComplexKBQA#25
# mechanism: the mask is moved only if the number of the GPU is not zero, and the number of the first GPU is zero
# expect: raises
import argparse

import torch
from torch import nn


class Batcher:
    def __init__(self, args):
        self.args = args
        self.use_cuda = torch.cuda.is_available() and args.gpu_id >= 0
        self.device = torch.device("cuda", args.gpu_id) if self.use_cuda else torch.device("cpu")

    def pad(self, rows):
        width = max(len(r) for r in rows)
        return torch.tensor([r + [0] * (width - len(r)) for r in rows])

    def __call__(self, questions, paths, answer):
        ids = self.pad([q + p for q, p in zip(questions, paths)])
        mask = (ids != 0).float()
        segment = self.pad([[0] * len(q) + [1] * len(p) for q, p in zip(questions, paths)])
        label = torch.tensor(answer)
        if self.use_cuda:
            ids, segment = ids.to(self.device), segment.to(self.device)  # ALSO
            label = label.to(self.device)
        if self.args.gpu_id != 0:  # ROOT
            mask = mask.to(self.device)
        return ids, segment, mask, label  # ALSO


class SelfAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, dim) for _ in range(3))

    def split(self, x):
        return x.view(*x.shape[:2], self.heads, -1).transpose(1, 2)

    def forward(self, x, mask):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores + mask  # RAISE
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class PathRanker(nn.Module):
    def __init__(self, vocab=30, dim=8, heads=2, layers=2):
        super().__init__()
        self.word, self.segment = nn.Embedding(vocab, dim), nn.Embedding(2, dim)
        self.layers = nn.ModuleList([SelfAttention(dim, heads) for _ in range(layers)])
        self.score = nn.Linear(dim, 1)

    def forward(self, ids, segment, mask):
        x = self.word(ids) + self.segment(segment)
        extended = (1.0 - mask[:, None, None, :]) * -10000.0
        for layer in self.layers:
            x = x + layer(x, extended)
        return self.score(x[:, 0]).squeeze(-1)


class Runner:
    def __init__(self, args):
        self.batcher = Batcher(args)
        self.model = PathRanker().to(self.batcher.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=args.lr)

    def step(self, questions, paths, answer):
        ids, segment, mask, label = self.batcher(questions, paths, answer)
        logits = self.model(ids, segment, mask)
        loss = nn.functional.cross_entropy(logits[None], label)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


def main(argv=()):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpu_id", type=int, default=0)
    parser.add_argument("--lr", type=float, default=1e-3)
    runner = Runner(parser.parse_args(list(argv)))
    questions = [[5, 6, 7]] * 3
    print(runner.step(questions, [[11], [12, 13], [14, 15, 16]], [1]))


if __name__ == "__main__":
    main()
