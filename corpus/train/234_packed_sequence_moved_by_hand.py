# source: pytorch/pytorch#22251 #4431, PR#27245
# mechanism: only the data of a PackedSequence is moved, and the indices that undo its sorting stay on the CPU
# phase: forward; aten::index_select
# expect: raises
import torch
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence

dev = torch.device("cuda", 0)


def to_device(packed, device):
    data = packed.data.to(device)
    return PackedSequence(data, packed.batch_sizes, packed.sorted_indices, packed.unsorted_indices)  # ROOT


class Tagger(torch.nn.Module):
    def __init__(self, words, tags):
        super().__init__()
        self.words = torch.nn.Embedding(words, 6)
        self.tags = torch.nn.Linear(6, tags)

    def forward(self, packed):
        scores = packed._replace(data=self.tags(self.words(packed.data)))
        padded, lengths = pad_packed_sequence(scores, batch_first=True)  # RAISE
        return padded, lengths


sentences = [torch.tensor([1, 4]), torch.tensor([3, 2, 5, 7]), torch.tensor([6])]
model = Tagger(8, 3).to(dev)
for _ in range(2):
    batch = pack_sequence(sentences, enforce_sorted=False)
    padded, lengths = model(to_device(batch, dev))  # ALSO
