# source: joeynmt/joeynmt PR#21
# mechanism: beam search makes the offsets of the batch without a device, and adds them to the beam indices of the decoder on the GPU.
# expect: raises
import torch
from torch import nn


class Seq2Seq(nn.Module):
    def __init__(self, vocab=20, dim=16):
        super().__init__()
        self.vocab = vocab
        self.src = nn.Embedding(vocab, dim)
        self.trg = nn.Embedding(vocab, dim)
        self.encoder = nn.GRU(dim, dim, batch_first=True)
        self.decoder = nn.GRU(dim, dim, batch_first=True)
        self.out = nn.Linear(dim, vocab)

    def encode(self, src):
        return self.encoder(self.src(src))[1]

    def decode_step(self, tokens, hidden):
        output, hidden = self.decoder(self.trg(tokens), hidden)
        return torch.log_softmax(self.out(output[:, -1]), dim=-1), hidden


class Batch:
    def __init__(self, rows, use_cuda):
        width = max(len(r) for r in rows)
        self.src = torch.tensor([r + [1] * (width - len(r)) for r in rows])
        if use_cuda:
            self.src = self.src.to("cuda:0")

    def __len__(self):
        return self.src.shape[0]


def tile(x, count, dim):
    return x.repeat_interleave(count, dim=dim)


def beam_search(model, batch, size, max_steps, bos=2, eos=3, alpha=1.0):
    device = batch.src.device
    count = len(batch)
    hidden = tile(model.encode(batch.src), size, dim=1)
    batch_offset = torch.arange(count, dtype=torch.long)  # ROOT
    alive = torch.full((count * size, 1), bos, dtype=torch.long, device=device)
    log_probs = torch.full((count, size), float("-inf"), device=device)
    log_probs[:, 0] = 0.0
    finished = torch.zeros(count, size, dtype=torch.bool, device=device)
    for step in range(max_steps):
        scores, hidden = model.decode_step(alive[:, -1:], hidden)
        scores = scores.view(count, size, -1) + log_probs[..., None]
        penalty = ((5.0 + step + 1) / 6.0) ** alpha
        log_probs, ids = (scores.view(count, -1) / penalty).topk(size, dim=-1)
        log_probs = log_probs * penalty
        beams, tokens = ids // model.vocab, ids % model.vocab
        select = (beams + batch_offset[:, None] * size).view(-1)  # RAISE # ALSO
        alive = torch.cat([alive.index_select(0, select), tokens.view(-1, 1)], dim=1)
        hidden = hidden.index_select(1, select)
        finished = finished.gather(1, beams) | tokens.eq(eos)
        if bool(finished.all()):
            break
    return alive.view(count, size, -1)[:, 0, 1:], log_probs[:, 0]


@torch.no_grad()
def validate_on_data(model, data, batch_size, beam_size, use_cuda):
    model.eval()
    hypotheses = []
    for start in range(0, len(data), batch_size):
        batch = Batch(data[start : start + batch_size], use_cuda)
        output, _ = beam_search(model, batch, beam_size, max_steps=5)
        hypotheses.extend(output.cpu().tolist())
    return hypotheses


def main():
    torch.manual_seed(0)
    use_cuda = torch.cuda.is_available()
    model = Seq2Seq()
    if use_cuda:
        model.to("cuda:0")
    data = [[4, 5, 6], [7, 8], [9, 10, 11, 12]]
    print(validate_on_data(model, data, batch_size=2, beam_size=3, use_cuda=use_cuda))


if __name__ == "__main__":
    main()
