# source: pytorch/pytorch#103964
# mechanism: with a GPU as default device a list of lengths becomes a tensor on the GPU where packing needs them on the CPU
# expect: raises
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD = 0


class Vocabulary:
    def __init__(self, sentences):
        words = sorted({w for s in sentences for w in s})
        self.index = {w: i + 1 for i, w in enumerate(words)}

    def __len__(self):
        return len(self.index) + 1

    def encode(self, sentence):
        return torch.tensor([self.index[w] for w in sentence])


class Collator:
    def __init__(self, vocab, tags):
        self.vocab = vocab
        self.tags = tags

    def __call__(self, rows):
        tokens = [self.vocab.encode(words) for words, _ in rows]
        labels = [torch.tensor([self.tags[t] for t in tags]) for _, tags in rows]
        return {
            "tokens": pad_sequence(tokens, batch_first=True, padding_value=PAD),
            "labels": pad_sequence(labels, batch_first=True, padding_value=-100),
            "lengths": [len(t) for t in tokens],
        }


class Tagger(nn.Module):
    def __init__(self, vocab_size, num_tags, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, dim, padding_idx=PAD)
        self.rnn = nn.LSTM(dim, dim, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * dim, num_tags)

    def forward(self, tokens, lengths):
        lengths = torch.as_tensor(lengths, dtype=torch.int64)  # ROOT
        packed = pack_padded_sequence(self.embed(tokens), lengths, batch_first=True, enforce_sorted=False)  # RAISE # ALSO
        hidden, _ = self.rnn(packed)
        padded, _ = pad_packed_sequence(hidden, batch_first=True)
        return self.out(padded)


def run_epoch(model, rows, collate, optimizer, batch_size=2):
    losses = []
    for i in range(0, len(rows), batch_size):
        batch = collate(rows[i : i + batch_size])
        logits = model(batch["tokens"], batch["lengths"])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch["labels"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


def main():
    torch.set_default_device("cuda" if torch.cuda.is_available() else "cpu")
    rows = [
        ("the cat sleeps".split(), "D N V".split()),
        ("a dog".split(), "D N".split()),
        ("cats sleep".split(), "N V".split()),
        ("the dog sees a cat".split(), "D N V D N".split()),
    ]
    tags = {t: i for i, t in enumerate("DNV")}
    vocab = Vocabulary([words for words, _ in rows])
    model = Tagger(len(vocab), len(tags))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        print(epoch, run_epoch(model, rows, Collator(vocab, tags), optimizer))


if __name__ == "__main__":
    main()
