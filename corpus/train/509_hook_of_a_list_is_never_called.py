# source: https://github.com/huggingface/accelerate/pull/392
# mechanism: the parts of a model get hooks that move what comes in, but one part is a list, which is gone through and never called
# phase: forward; failing op: aten::native_layer_norm
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mix = nn.Linear(width, width)

    def forward(self, rows):
        return rows + self.mix(self.norm(rows))  # RAISE


class Writer(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.blocks = nn.ModuleList([Block(width), Block(width)])
        self.vote = nn.Linear(width, words)

    def forward(self, tokens):
        rows = self.words(tokens)
        for block in self.blocks:
            rows = block(rows)
        return self.vote(rows)


def place(part, device):
    part.to(device)
    part.register_forward_pre_hook(lambda _, inputs: tuple(one.to(device) for one in inputs))  # ROOT


writer = Writer(11, 4)
place(writer.words, "cuda:0")
place(writer.blocks, "cuda:1")  # ALSO
place(writer.vote, "cuda:0")
print(writer(torch.tensor([[1, 2, 3]])).shape)
