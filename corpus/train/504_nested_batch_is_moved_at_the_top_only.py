# source: https://github.com/naist-nlp/knn-seq/issues/4
# mechanism: a function that moves nested batches calls itself for what is in a mapping, and forgets to hand the device on
# phase: forward; failing op: aten::embedding
# expect: raises
import torch
from torch import nn


def transfer(value, device="cpu"):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {key: transfer(part) for key, part in value.items()}  # ROOT
    if isinstance(value, (list, tuple)):
        return type(value)(transfer(part, device) for part in value)
    return value


class Retriever(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.project = nn.Linear(width, width)

    def forward(self, source, lengths):
        hidden = self.words(source["tokens"])  # RAISE
        summed = (hidden * source["mask"].unsqueeze(-1)).sum(1)
        return self.project(summed / lengths.unsqueeze(-1))


tokens = torch.tensor([[4, 2, 0], [1, 3, 5]])
batch = [{"tokens": tokens, "mask": tokens != 0, "id": "a"}, torch.tensor([2, 3])]
device = torch.device("cuda")
model = Retriever(7, 4).to(device)
source, lengths = transfer(batch, device)
print(model(source, lengths).shape)
