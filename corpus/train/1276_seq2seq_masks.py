# source: SamLynnEvans/Transformer#27
# mechanism: an option is compared with a value it never has, so the look-ahead mask is not brought to the GPU
# expect: raises
import argparse

import torch
from torch import nn


def nopeak_mask(size, opt):
    upper = torch.triu(torch.ones(1, size, size, dtype=torch.uint8), diagonal=1)  # ALSO
    keep = upper == 0
    if opt.device == 0:  # ROOT
        keep = keep.cuda()
    return keep


def create_masks(src, trg, opt):
    src_mask = (src != opt.src_pad).unsqueeze(-2)
    trg_mask = (trg != opt.trg_pad).unsqueeze(-2)
    np_mask = nopeak_mask(trg.size(1), opt)  # ALSO
    trg_mask = trg_mask & np_mask  # RAISE # ALSO
    return src_mask, trg_mask


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(dim, dim) for _ in range(3))

    def forward(self, x, memory, mask):
        scores = self.q(x) @ self.k(memory).transpose(1, 2) / x.shape[-1] ** 0.5
        return scores.masked_fill(~mask, -1e9).softmax(-1) @ self.v(memory)


class Seq2Seq(nn.Module):
    def __init__(self, src_vocab, trg_vocab, dim=12):
        super().__init__()
        self.src_emb, self.trg_emb = nn.Embedding(src_vocab, dim), nn.Embedding(trg_vocab, dim)
        self.enc, self.dec, self.cross = Attention(dim), Attention(dim), Attention(dim)
        self.out = nn.Linear(dim, trg_vocab)

    def forward(self, src, trg, src_mask, trg_mask):
        s = self.src_emb(src)
        s = s + self.enc(s, s, src_mask)
        t = self.trg_emb(trg)
        t = t + self.dec(t, t, trg_mask)
        return self.out(t + self.cross(t, s, src_mask))


def batches(opt, n=2):
    for _ in range(n):
        src, trg = torch.randint(1, 20, (3, 6)), torch.randint(1, 20, (3, 5))
        src[0, 4:], trg[1, 3:] = opt.src_pad, opt.trg_pad
        yield src.to(opt.device), trg.to(opt.device)


def train_model(model, opt):
    model.train()
    for src, trg in batches(opt):
        trg_input = trg[:, :-1]
        src_mask, trg_mask = create_masks(src, trg_input, opt)
        preds = model(src, trg_input, src_mask, trg_mask)
        ys = trg[:, 1:].reshape(-1)
        loss = nn.functional.cross_entropy(preds.flatten(0, 1), ys, ignore_index=opt.trg_pad)
        opt.optimizer.zero_grad()
        loss.backward()
        opt.optimizer.step()
    return loss.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-no_cuda", action="store_true")
    parser.add_argument("-lr", type=float, default=1e-3)
    opt = parser.parse_args([])
    torch.manual_seed(0)
    opt.src_pad = opt.trg_pad = 0
    opt.device = "cuda" if not opt.no_cuda and torch.cuda.is_available() else "cpu"
    model = Seq2Seq(20, 20).to(opt.device)
    opt.optimizer = torch.optim.Adam(model.parameters(), lr=opt.lr)
    print(train_model(model, opt))


if __name__ == "__main__":
    main()
