# source: joeynmt/joeynmt#21
# mechanism: the beam offsets of a beam search are made on the CPU and added to beam indices of the GPU, while all other state of the search follows the encoder
# expect: raises
import torch
from torch import nn

BOS, EOS = 1, 2


class Encoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src):
        out, last = self.rnn(self.embed(src))
        return out, last.squeeze(0)


class Decoder(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.cell = nn.GRUCell(2 * dim, dim)
        self.out = nn.Linear(dim, vocab)

    def step(self, tokens, hidden, memory):
        weights = (memory @ hidden.unsqueeze(-1)).softmax(1)
        context = (weights * memory).sum(1)
        hidden = self.cell(torch.cat([self.embed(tokens), context], -1), hidden)
        return self.out(hidden).log_softmax(-1), hidden


def tile(x, count):
    return x.repeat_interleave(count, dim=0)


def length_penalty(step, alpha):
    return ((5.0 + step) / 6.0) ** alpha


def beam_offsets(batch_size, beam_size):
    return torch.arange(0, batch_size * beam_size, beam_size, dtype=torch.long)


class BeamSearch:
    def __init__(self, decoder, size, max_len, alpha=1.0):
        self.decoder, self.size, self.max_len, self.alpha = decoder, size, max_len, alpha

    def __call__(self, memory, hidden):
        batch, device = memory.shape[0], memory.device
        offsets = beam_offsets(batch, self.size)  # ROOT
        memory, hidden = tile(memory, self.size), tile(hidden, self.size)
        seqs = torch.full((batch * self.size, 1), BOS, dtype=torch.long, device=device)
        scores = torch.full((batch, self.size), float("-inf"), device=device)
        scores[:, 0] = 0.0
        for step in range(self.max_len):
            logp, hidden = self.decoder.step(seqs[:, -1], hidden, memory)
            vocab = logp.shape[-1]
            total = (scores.reshape(-1, 1) + logp).reshape(batch, self.size * vocab)
            scores, ids = total.topk(self.size, dim=-1)
            origin = torch.div(ids, vocab, rounding_mode="floor")
            select = (origin + offsets.unsqueeze(1)).reshape(-1)  # RAISE # ALSO
            seqs = torch.cat([seqs.index_select(0, select), (ids % vocab).reshape(-1, 1)], 1)
            hidden = hidden.index_select(0, select)
            if (seqs[:, -1] == EOS).all():
                break
        best = (scores / length_penalty(step + 1, self.alpha)).argmax(-1)
        return seqs.reshape(batch, self.size, -1)[torch.arange(batch, device=device), best]


class Translator:
    def __init__(self, vocab, dim, device):
        self.device = device
        self.encoder = Encoder(vocab, dim).to(device).eval()
        self.decoder = Decoder(vocab, dim).to(device).eval()

    @torch.no_grad()
    def translate(self, src, beam_size):
        memory, hidden = self.encoder(src.to(self.device))
        search = BeamSearch(self.decoder, beam_size, max_len=5)
        return search(memory, hidden).cpu().tolist()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    translator = Translator(14, 10, device)
    print(translator.translate(torch.randint(3, 14, (2, 6)), beam_size=3))


if __name__ == "__main__":
    main()
