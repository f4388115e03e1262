# source: a variation of https://github.com/Lightning-AI/pytorch-lightning/issues/888
# mechanism: a helper that moves a batch goes by types; an object among the entries matches none and is handed back as it is
# phase: forward; aten::embedding
# expect: raises
from dataclasses import dataclass

import torch

dev = torch.device("cuda", 0)


@dataclass
class Passage:
    tokens: torch.Tensor
    title: str


def send(value, device=None):
    if device is None:
        return value
    if isinstance(value, torch.Tensor):
        return value.to(device)
    elif isinstance(value, (list, tuple)):
        return type(value)(send(part, device) for part in value)
    elif isinstance(value, dict):
        moved = {}
        for name, part in value.items():
            moved[name] = send(part, device)
        return moved
    else:
        return value  # ROOT


class Reader(torch.nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = torch.nn.Embedding(words, width)
        self.match = torch.nn.Bilinear(width, width, 1)

    def mean(self, tokens):
        return self.words(tokens).mean(1)  # RAISE

    def forward(self, question, passages):
        asked = self.mean(question)
        return torch.cat([self.match(asked, self.mean(passage.tokens)) for passage in passages], 1)


def batches():
    for seed in range(2):
        made = torch.Generator().manual_seed(seed)
        tokens = [torch.randint(0, 20, (3, 5), generator=made) for _ in range(3)]
        yield {"question": tokens[0], "passages": [Passage(part, "title") for part in tokens[1:]]}


model = Reader(words=20, width=4).to(dev)
for batch in batches():
    model(**send(batch, dev)).softmax(1)
