# source: none; what tokenizers of transformers return is a UserDict, and movers of batches ask for dict
# mechanism: a recursive mover knows dictionaries, lists and tensors; a batch that is a UserDict passes as it is
# phase: forward; aten::embedding
# expect: raises
from collections import UserDict

import torch
from torch import nn


class Encoded(UserDict):  # ALSO
    pass


def bring(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):  # ROOT
        return {name: bring(part, device) for name, part in value.items()}
    if isinstance(value, list):
        return [bring(part, device) for part in value]
    return value


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(8, 4)
        self.head = nn.Linear(4, 3)

    def forward(self, ids, mask):
        vectors = self.embed(ids)  # RAISE
        return self.head((vectors * mask[..., None]).sum(1))


def batches(count):
    for _ in range(count):
        ids = torch.randint(0, 8, (2, 5))
        yield [Encoded(ids=ids, mask=ids.ne(0)), torch.randint(0, 3, (2,))]  # ALSO


model = Words().cuda()
for batch in batches(2):
    inputs, labels = bring(batch, "cuda")
    print(nn.functional.cross_entropy(model(**inputs), labels).item())
