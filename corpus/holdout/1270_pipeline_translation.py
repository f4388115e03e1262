# source: facebookresearch/fairseq#5189
# mechanism: a pipeline over two GPUs moves the hidden states from the encoder's to the decoder's device, but not the padding mask that goes with them
# expect: raises
# needs: 2 GPUs
import torch
from torch import nn
import torch.nn.functional as F

PAD, EOS = 0, 1


class EncoderStage(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)

    def forward(self, src_tokens):
        padding_mask = src_tokens.eq(PAD)
        out, _ = self.rnn(self.embed(src_tokens))
        return {"encoder_out": out, "encoder_padding_mask": padding_mask}


class DecoderStage(nn.Module):
    def __init__(self, vocab, dim):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim, padding_idx=PAD)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.proj = nn.Linear(2 * dim, vocab)

    def attend(self, query, memory, padding_mask):
        scores = query @ memory.transpose(1, 2)
        scores = scores.masked_fill(padding_mask.unsqueeze(1), float("-inf"))  # RAISE # ALSO
        return scores.softmax(-1) @ memory

    def forward(self, prev_tokens, encoder):
        x, _ = self.rnn(self.embed(prev_tokens))
        context = self.attend(x, encoder["encoder_out"], encoder["encoder_padding_mask"])  # ALSO
        return self.proj(torch.cat([x, context], -1))


class PipelineTransformer(nn.Module):
    def __init__(self, vocab, dim, devices):
        super().__init__()
        self.devices = devices
        self.encoder = EncoderStage(vocab, dim).to(devices[0])
        self.decoder = DecoderStage(vocab, dim).to(devices[-1])

    def transfer(self, encoder):
        target = self.devices[-1]
        return {
            "encoder_out": encoder["encoder_out"].to(target),
            "encoder_padding_mask": encoder["encoder_padding_mask"],  # ROOT
        }

    def forward(self, src_tokens, prev_tokens):
        encoder = self.encoder(src_tokens.to(self.devices[0]))
        return self.decoder(prev_tokens.to(self.devices[-1]), self.transfer(encoder))


def label_smoothed_nll(logits, target, eps=0.1):
    lprobs = F.log_softmax(logits, -1)
    target = target.to(logits.device)
    keep = target.ne(PAD)
    nll = -lprobs.gather(-1, target.unsqueeze(-1)).squeeze(-1)
    smooth = -lprobs.mean(-1)
    return ((1 - eps) * nll + eps * smooth)[keep].mean()


def collate(pairs):
    pad = nn.utils.rnn.pad_sequence
    src = pad([torch.tensor(s) for s, _ in pairs], True, PAD)
    tgt = pad([torch.tensor(t) for _, t in pairs], True, PAD)
    prev = torch.cat([torch.full((len(pairs), 1), EOS), tgt[:, :-1]], 1)
    return {"src_tokens": src, "prev_tokens": prev}, tgt


def main():
    torch.manual_seed(0)
    names = ("cuda:0", "cuda:1") if torch.cuda.device_count() > 1 else ("cpu", "cpu")
    model = PipelineTransformer(12, 8, [torch.device(n) for n in names])
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    net_input, target = collate([([4, 5, 6, 1], [7, 8, 1]), ([9, 1], [3, 1])])
    for _ in range(2):
        loss = label_smoothed_nll(model(**net_input), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
