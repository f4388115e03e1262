# source: fastai/fastai#3158
# mechanism: the hidden state is made when the model is built and kept as a plain list, so moving the model to the GPU leaves it behind
# expect: raises
import torch
from torch import nn


class WeightDropout(nn.Module):
    def __init__(self, module, p):
        super().__init__()
        self.module, self.p = module, p

    def forward(self, x, hidden):
        out, new = self.module(x, hidden)  # RAISE
        return nn.functional.dropout(out, self.p, self.training), new


class AWDEncoder(nn.Module):
    def __init__(self, vocab, emb=8, hid=12, n_layers=2, bs=4):
        super().__init__()
        self.bs, self.emb_sz, self.hid, self.n_layers = bs, emb, hid, n_layers
        self.encoder = nn.Embedding(vocab, emb)
        self.rnns = nn.ModuleList([
            WeightDropout(nn.LSTM(emb if i == 0 else hid, self._size(i), batch_first=True), 0.1)
            for i in range(n_layers)
        ])
        self.reset()

    def _size(self, i):
        return self.hid if i != self.n_layers - 1 else self.emb_sz

    def _one_hidden(self, i):
        weight = next(self.parameters())
        return (weight.new_zeros(1, self.bs, self._size(i)), weight.new_zeros(1, self.bs, self._size(i)))

    def reset(self):
        self.hidden = [self._one_hidden(i) for i in range(self.n_layers)]

    def forward(self, ids):
        output, new_hidden = self.encoder(ids), []
        for rnn, hidden in zip(self.rnns, self.hidden):
            output, h = rnn(output, hidden)  # ALSO
            new_hidden.append(tuple(t.detach() for t in h))
        self.hidden = new_hidden
        return output


class LinearDecoder(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.decoder = nn.Linear(encoder.emb_sz, encoder.encoder.num_embeddings)
        self.decoder.weight = encoder.encoder.weight

    def forward(self, x):
        return self.decoder(x)


class LMDataLoader:
    def __init__(self, n_tokens, vocab, bs, seq_len):
        stream = torch.randint(0, vocab, (bs, n_tokens))
        self.x = stream.split(seq_len, dim=1)

    def __iter__(self):
        for part in self.x:
            if part.shape[1] > 1:
                yield part[:, :-1], part[:, 1:]


class LMLearner:
    def __init__(self, loader, encoder, device):
        self.loader, self.device = loader, device
        self.encoder = encoder
        self.model = nn.Sequential(encoder, LinearDecoder(encoder))
        self.model.to(device)  # ROOT
        self.opt = torch.optim.Adam(self.model.parameters(), lr=1e-2)

    def one_epoch(self):
        self.model.train()  # ALSO
        for x, y in self.loader:
            logits = self.model(x.to(self.device))
            loss = nn.functional.cross_entropy(logits.flatten(0, 1), y.to(self.device).flatten())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        self.encoder.reset()
        return loss.item()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    learner = LMLearner(LMDataLoader(21, 15, 4, 7), AWDEncoder(15), device)
    print([learner.one_epoch() for _ in range(2)])


if __name__ == "__main__":
    main()
