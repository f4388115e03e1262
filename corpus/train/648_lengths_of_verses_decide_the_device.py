# source: GRAAL-Research/deepparse PR#298
# mechanism: a mask is made on the device of the lengths, which come from a list
# phase: inference; masked_fill
# expect: raises
import torch
from torch import nn


class VerseAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(torch.randn(width))
        self.key = nn.Linear(width, width)

    def mask(self, longest, lengths):
        device = lengths.device
        steps = torch.arange(longest, device=device)
        late = torch.zeros(len(lengths), longest, dtype=torch.bool, device=device)
        for row, length in enumerate(lengths.tolist()):
            late[row] = steps >= length
        return late

    def forward(self, verses, lengths):
        lengths = torch.tensor(lengths)  # ROOT
        scores = self.key(verses) @ self.query
        late = self.mask(verses.shape[1], lengths)  # ALSO
        scores = scores.masked_fill(late, float("-inf"))  # RAISE  # ALSO
        return scores.softmax(-1).unsqueeze(-1).mul(verses).sum(1)


class Rhymes(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.attention = VerseAttention(width)

    def forward(self, verses, lengths):
        return self.attention(self.word(verses), lengths)


rhymes = Rhymes(30, 8).to("cuda:0").eval()
verses = torch.randint(30, (2, 5)).to("cuda:0")
with torch.no_grad():
    print(rhymes(verses, [5, 3]).shape)
