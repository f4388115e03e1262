# source: none; the shape of maps from a model's parts to devices, as large models are spread by
# mechanism: the parts are moved one by one by a map that leaves out the one with no weights; its buffer is used as a view
# phase: forward; aten::mul
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn


class Frequencies(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.register_buffer("per_step", 10.0 ** -torch.linspace(0, 1, width), persistent=False)

    def forward(self, hidden):
        steps = torch.arange(hidden.shape[1], device=hidden.device)
        return (self.per_step[None, None, :] * steps[None, :, None]).cos()  # RAISE  # ALSO


class Reader(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.frequencies = Frequencies(width)
        self.first = nn.Linear(width, width)
        self.second = nn.Linear(width, width)

    def forward(self, tokens):
        hidden = self.words(tokens)
        phases = self.frequencies(hidden)
        hidden = self.first(hidden * phases).to(self.second.weight.device)
        return self.second(hidden)


def spread(model, where):
    for part, place in where.items():
        getattr(model, part).to(place)
    return model


placement = {  # ROOT
    "words": "cuda:0",  # ALSO
    "first": "cuda:0",  # ALSO
    "second": "cuda:1",  # ALSO
}
reader = spread(Reader(11, 4), placement)
print(reader(torch.tensor([[1, 2, 3]], device="cuda:0")).device)
