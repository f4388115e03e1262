# source: rohitg00/ai-engineering-from-scratch#47
# mechanism: the start token of a decoder that is trained with teacher forcing is a torch.full without a device
# expect: raises
import random

import torch
from torch import nn

SOS, EOS, PAD = 1, 2, 0


class Encoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        return self.gru(self.embed(src))


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def forward(self, token, hidden):
        emb = self.embed(token)  # RAISE
        output, hidden = self.gru(emb, hidden)
        return self.out(output), hidden


def start_tokens(batch_size, sos=SOS):
    return torch.full((batch_size, 1), sos, dtype=torch.long)


def train_batch(encoder, decoder, src, tgt, optimizer, teacher_forcing_ratio=0.9):
    loss_fn = nn.CrossEntropyLoss(ignore_index=PAD)
    _, hidden = encoder(src)
    token = start_tokens(src.shape[0])  # ROOT
    loss = 0.0
    for t in range(tgt.shape[1]):
        logits, hidden = decoder(token, hidden)  # ALSO
        loss = loss + loss_fn(logits.squeeze(1), tgt[:, t])
        if random.random() < teacher_forcing_ratio:
            token = tgt[:, t].unsqueeze(1)
        else:
            token = logits.argmax(-1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item() / tgt.shape[1]


@torch.no_grad()
def greedy(encoder, decoder, src, max_len=6):
    _, hidden = encoder(src)
    token = torch.full((src.shape[0], 1), SOS, dtype=torch.long, device=src.device)
    out = []
    for _ in range(max_len):
        logits, hidden = decoder(token, hidden)
        token = logits.argmax(-1)
        out.append(token)
    return torch.cat(out, dim=1)


def copy_task(batch=4, length=5, vocab=12):
    src = torch.randint(3, vocab, (batch, length))
    return src, torch.cat([src, torch.full((batch, 1), EOS)], dim=1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    encoder, decoder = Encoder(12, 16).to(device), Decoder(12, 16).to(device)
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-2)
    for step in range(3):
        src, tgt = (t.to(device) for t in copy_task())
        print(step, train_batch(encoder, decoder, src, tgt, optimizer))
    print(greedy(encoder, decoder, src).tolist())


if __name__ == "__main__":
    main()
