# source: a variation of https://github.com/sniklaus/pytorch-spynet/issues/17
# mechanism: a table is kept under its size and type, and made by another function on the device of the first who asks
# phase: second half of a pipeline; aten::add
# expect: raises
# needs: 2 GPUs
import torch

first, second = torch.device("cuda", 0), torch.device("cuda", 1)


def distances(length, heads, device):
    steps = torch.arange(length, device=device)
    slopes = 2.0 ** -torch.arange(1, heads + 1, device=device)
    return -slopes[:, None, None] * (steps[:, None] - steps).abs()


class Biases:
    def __init__(self):
        self.tables = {}

    def of(self, length, heads, like):
        key = (length, heads, like.dtype)  # ROOT
        found = self.tables.get(key)
        if found is None:  # ALSO
            found = self.tables[key] = distances(length, heads, like.device)
        return found  # ALSO


class Layer(torch.nn.Module):
    def __init__(self, width, heads, biases):
        super().__init__()
        self.heads, self.biases = heads, biases
        self.mix = torch.nn.Linear(width, 3 * width)

    def forward(self, x):
        query, key, value = self.mix(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-1, -2)
        scores = scores + self.biases.of(x.shape[1], self.heads, scores)  # RAISE
        return (scores.softmax(-1) @ value).transpose(1, 2).flatten(2)


biases = Biases()
stages = [Layer(4, 2, biases).to(first), Layer(4, 2, biases).to(second)]
x = torch.randn(2, 5, 4, device=first)
for stage, device in zip(stages, (first, second)):
    x = stage(x.to(device))
