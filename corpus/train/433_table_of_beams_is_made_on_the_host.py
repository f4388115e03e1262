# source: kaylode/caption-transformer#3
# mechanism: a table of hypotheses is made without a device; a part of it is moved for the model, the table itself is not
# phase: forward; aten::index
# expect: raises
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, words=12):
        super().__init__()
        self.embed = nn.Embedding(words, 8)
        self.head = nn.Linear(8, words)

    def forward(self, ids):
        return self.head(self.embed(ids).mean(1)).log_softmax(-1)


def begin(beams, length):
    table = torch.zeros(beams, length, dtype=torch.long)  # ROOT
    table[:, 0] = 1
    return table


def extend(table, scores, step):
    best = scores.max(-1).values.topk(table.shape[0]).indices
    table = table[best]  # RAISE  # ALSO
    table[:, step] = scores[best].argmax(-1)
    return table


def search(model, beams=3, length=5):
    table = begin(beams, length)  # ALSO
    for step in range(1, length):
        seen = table[:, :step].to("cuda")
        scores = model(seen)
        table = extend(table, scores, step)
    return table


print(search(Decoder().cuda().eval()))
