# source: own program
# mechanism: a table of position encodings is cached once per device and looked up with the device of the input
# expect: clean
import torch
from torch import nn


class PositionTable:
    def __init__(self, dim):
        self.dim = dim
        self.tables = {}

    def build(self, length, device):
        steps = torch.arange(length, device=device).float()[:, None]
        rates = torch.exp(-torch.arange(0, self.dim, 2, device=device).float() * 0.3)
        return torch.cat([(steps * rates).sin(), (steps * rates).cos()], dim=-1)

    def get(self, length, device):
        key = torch.device(device)
        table = self.tables.get(key)
        if table is None or len(table) < length:
            table = self.tables[key] = self.build(length, key)
        return table[:length]


SHARED = PositionTable(16)


class Encoder(nn.Module):
    def __init__(self, vocab=30, dim=16):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.layer = nn.TransformerEncoderLayer(dim, 4, 32, batch_first=True)

    def forward(self, tokens):
        x = self.embed(tokens)
        return self.layer(x + SHARED.get(tokens.shape[1], x.device)).mean(1)


class Scorer:
    def __init__(self, teacher, student):
        self.teacher = teacher
        self.student = student

    def device_of(self, model):
        return next(model.parameters()).device

    def distance(self, tokens):
        with torch.no_grad():
            wanted = self.teacher(tokens.to(self.device_of(self.teacher)))
        given = self.student(tokens.to(self.device_of(self.student)))
        return (given - wanted.to(given.device)).pow(2).mean()


def main():
    torch.manual_seed(0)
    scorer = Scorer(Encoder().eval(), Encoder().to("cuda"))
    optimizer = torch.optim.Adam(scorer.student.parameters(), lr=1e-3)
    for length in (5, 9, 4):
        loss = scorer.distance(torch.randint(0, 30, (3, length)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(length, loss.item(), sorted(str(k) for k in SHARED.tables))


if __name__ == "__main__":
    main()
