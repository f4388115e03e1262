# source: haoosz/ConceptExpress#5
# mechanism: a tokenizer makes ids of strings; the preview hands them to the encoder as they are
# phase: validation; aten::index_select
# expect: raises
import torch
from torch import nn

TITLES = ["soup of roasted pumpkin", "bread with seeds", "salad of pears and walnuts", "cold soup with bread"]


class Tokenizer:
    def __init__(self, lines, longest=6):
        words = sorted({word for line in lines for word in line.split()})
        self.index = {word: number for number, word in enumerate(words, 1)}
        self.longest = longest

    def __call__(self, lines):
        rows = []
        for line in lines:
            row = [self.index.get(word, 0) for word in line.split()][: self.longest]
            rows.append(row + [0] * (self.longest - len(row)))
        return torch.tensor(rows)


class TitleEncoder(nn.Module):
    def __init__(self, words, width):
        super().__init__()
        self.table = nn.Embedding(words + 1, width)
        self.mix = nn.Linear(width, width)

    def forward(self, ids):
        return self.mix(self.table(ids).mean(dim=1))  # RAISE


@torch.no_grad()
def preview(encoder, tokenizer, prompts, dishes):
    ids = tokenizer(prompts)  # ROOT
    wanted = nn.functional.normalize(encoder(ids), dim=-1)  # ALSO
    return (wanted @ dishes.T).argmax(dim=-1)


device = "cuda" if torch.cuda.is_available() else "cpu"
tokenizer = Tokenizer(TITLES)
encoder = TitleEncoder(len(tokenizer.index), 8).to(device)
dishes = torch.randn(len(TITLES), 8, device=device)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1)

for ids, wanted in zip(torch.randint(1, 10, (2, 4, 6)), torch.randn(2, 4, 8)):
    loss = (encoder(ids.to(device)) - wanted.to(device)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(preview(encoder, tokenizer, ["soup with seeds"], dishes))
