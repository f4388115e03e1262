# source: bentrevett/pytorch-seq2seq#156
# mechanism: an iterator moves the sentence lengths to the GPU together with the tokens, but packing a sequence wants its lengths on the CPU
# expect: raises
import torch
from torch import nn

PAD = 0


class BucketIterator:
    def __init__(self, pairs, batch_size, device):
        self.pairs = sorted(pairs, key=lambda p: len(p[0]))
        self.batch_size, self.device = batch_size, device

    def pad(self, rows):
        return nn.utils.rnn.pad_sequence([torch.tensor(r) for r in rows], padding_value=PAD).to(self.device)

    def __iter__(self):
        for i in range(0, len(self.pairs), self.batch_size):
            part = self.pairs[i:i + self.batch_size]
            lengths = torch.tensor([len(s) for s, _ in part]).to(self.device)  # ALSO
            yield (self.pad([s for s, _ in part]), lengths), self.pad([t for _, t in part])


class Encoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, bidirectional=True)
        self.fc = nn.Linear(2 * dim, dim)

    def forward(self, src, src_len):
        embedded = self.embedding(src)
        packed = nn.utils.rnn.pack_padded_sequence(embedded, src_len, enforce_sorted=False)  # RAISE # ROOT
        outputs, hidden = self.rnn(packed)
        outputs, _ = nn.utils.rnn.pad_packed_sequence(outputs)
        return outputs, torch.tanh(self.fc(torch.cat([hidden[-2], hidden[-1]], 1)))


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embedding = nn.Embedding(vocab, dim)
        self.energy = nn.Linear(3 * dim, 1)
        self.cell = nn.GRUCell(3 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def forward(self, token, hidden, memory, mask):
        query = hidden.unsqueeze(0).expand(memory.shape[0], -1, -1)
        scores = self.energy(torch.cat([query, memory], -1)).squeeze(-1)
        weights = scores.masked_fill(~mask, -1e10).softmax(0).unsqueeze(-1)
        context = (weights * memory).sum(0)
        hidden = self.cell(torch.cat([self.embedding(token), context], 1), hidden)
        return self.out(hidden), hidden


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, trg_vocab, dim=8):
        super().__init__()
        self.encoder, self.decoder = Encoder(src_vocab, dim), Decoder(trg_vocab, dim)

    def forward(self, src, src_len, trg):
        memory, hidden = self.encoder(src, src_len)  # ALSO
        mask = src != PAD
        outputs = []
        for t in range(trg.shape[0] - 1):
            logits, hidden = self.decoder(trg[t], hidden, memory, mask)
            outputs.append(logits)
        return torch.stack(outputs)


def train(model, iterator, optimizer, clip=1.0):
    total = 0.0
    for (src, src_len), trg in iterator:
        output = model(src, src_len, trg)  # ALSO
        loss = nn.functional.cross_entropy(output.flatten(0, 1), trg[1:].flatten(), ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        total += loss.item()
    return total


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    pairs = [([2, 4, 5, 3], [2, 6, 3]), ([2, 7, 3], [2, 8, 9, 3]), ([2, 5, 3], [2, 4, 3])]
    model = Seq2Seq(10, 10).to(device)
    print(train(model, BucketIterator(pairs, 2, device), torch.optim.Adam(model.parameters())))


if __name__ == "__main__":
    main()
