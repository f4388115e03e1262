# source: facebookresearch/ParlAI#2910
# mechanism: lengths are counted from a mask on the GPU and are given to pack_padded_sequence, which takes them on the CPU only
# expect: raises
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


class UnknownDropout(nn.Module):
    def __init__(self, unknown_idx, probability):
        super().__init__()
        self.unknown_idx, self.prob = unknown_idx, probability

    def forward(self, xs):
        if self.training and self.prob > 0:
            drop = torch.rand(xs.shape, device=xs.device) < self.prob
            xs = xs.masked_fill(drop & (xs > 1), self.unknown_idx)
        return xs


class RNNEncoder(nn.Module):
    def __init__(self, num_features, dim, hidden, padding_idx=0, dropout=0.1):
        super().__init__()
        self.padding_idx = padding_idx
        self.unk = UnknownDropout(1, dropout)
        self.lt = nn.Embedding(num_features, dim, padding_idx=padding_idx)
        self.rnn = nn.GRU(dim, hidden, batch_first=True)

    def forward(self, xs):
        mask = xs.ne(self.padding_idx)
        embedded = self.lt(self.unk(xs))
        lengths = mask.sum(dim=1)  # ROOT
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)  # RAISE # ALSO
        output, hidden = self.rnn(packed)
        output, _ = pad_packed_sequence(output, batch_first=True, total_length=xs.shape[1])
        return output, hidden, mask


class GeneralAttention(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.attn = nn.Linear(hidden, hidden, bias=False)

    def forward(self, query, keys, mask):
        scores = torch.bmm(self.attn(query), keys.transpose(1, 2))
        scores = scores.masked_fill(~mask.unsqueeze(1), -1e20)
        return torch.bmm(scores.softmax(-1), keys)


class Seq2seq(nn.Module):
    def __init__(self, num_features=25, dim=6, hidden=10):
        super().__init__()
        self.encoder = RNNEncoder(num_features, dim, hidden)
        self.decoder = nn.GRU(dim, hidden, batch_first=True)
        self.attention = GeneralAttention(hidden)
        self.out = nn.Linear(2 * hidden, num_features)

    def forward(self, xs, ys):
        keys, hidden, mask = self.encoder(xs)
        output, _ = self.decoder(self.encoder.lt(ys[:, :-1]), hidden)
        mixed = torch.cat([output, self.attention(output, keys, mask)], dim=-1)
        return self.out(mixed)


class Agent:
    def __init__(self, opt):
        self.use_cuda = not opt.get("no_cuda") and torch.cuda.is_available()
        self.model = Seq2seq()
        if self.use_cuda:
            self.model.cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=opt["lr"])

    def train_step(self, xs, ys):
        if self.use_cuda:
            xs, ys = xs.cuda(), ys.cuda()
        scores = self.model(xs, ys)
        loss = nn.functional.cross_entropy(scores.flatten(0, 1), ys[:, 1:].flatten(), ignore_index=0)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.item()


if __name__ == "__main__":
    agent = Agent({"lr": 1e-2})
    xs = torch.tensor([[4, 5, 6, 0], [7, 8, 0, 0]])
    ys = torch.tensor([[2, 9, 10, 3], [2, 11, 3, 0]])
    print(agent.train_step(xs, ys))
