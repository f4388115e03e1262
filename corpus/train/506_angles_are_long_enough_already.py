# source: https://github.com/huggingface/transformers/pull/26448
# mechanism: the method that fills a cache returns early if it is long enough, and does not look at where it is
# phase: forward after a trial on the host; failing op: aten::mul.Tensor
# expect: raises
import torch
from torch import nn


class Turn(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.length = 0
        self.wave = None  # ALSO

    def prepare(self, length, device, dtype):
        if length <= self.length:  # ROOT
            return
        steps = torch.arange(length, device=device, dtype=torch.float32)
        rates = 100 ** (-torch.arange(self.width, device=device) / self.width)
        self.wave = torch.outer(steps, rates).cos().to(dtype)
        self.length = length

    def forward(self, rows):
        self.prepare(rows.shape[1], rows.device, rows.dtype)
        return rows * self.wave[: rows.shape[1]]  # RAISE  # ALSO


class Reader(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.turn = Turn(width)
        self.vote = nn.Linear(width, words)

    def forward(self, tokens):
        return self.vote(self.turn(self.words(tokens)))


reader = Reader(9, 4)
tokens = torch.randint(0, 9, (2, 6))
print("trial", reader(tokens).shape)
reader.to("cuda")
print("run", reader(tokens[:, :4].to("cuda")).shape)
