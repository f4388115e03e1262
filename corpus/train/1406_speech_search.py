# source: espnet/espnet#5612
# mechanism: batching of hypotheses makes the scores from Python numbers on the CPU, and the search selects among them with indices that come from topk on the GPU
# expect: raises
from typing import Dict, List, NamedTuple

import torch
from torch import nn


class Hypothesis(NamedTuple):
    yseq: torch.Tensor
    score: float = 0.0


class BatchHypothesis(NamedTuple):
    yseq: torch.Tensor
    score: torch.Tensor
    length: torch.Tensor


class AttentionScorer(nn.Module):
    def __init__(self, vocab, dim=8):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.out = nn.Linear(dim, vocab)

    def batch_score(self, ys, enc):
        state = self.embed(ys).mean(1) + enc.mean(1)
        return self.out(state).log_softmax(-1)


class BatchSearch(nn.Module):
    def __init__(self, scorers: Dict[str, nn.Module], weights, beam, vocab, sos, eos):
        super().__init__()
        self.scorers = nn.ModuleDict(scorers)
        self.weights, self.beam, self.vocab = weights, beam, vocab
        self.sos, self.eos = sos, eos

    def batchfy(self, hyps: List[Hypothesis]) -> BatchHypothesis:
        device = hyps[0].yseq.device
        return BatchHypothesis(
            yseq=torch.stack([h.yseq for h in hyps]),
            length=torch.tensor([len(h.yseq) for h in hyps], dtype=torch.int64, device=device),
            score=torch.tensor([h.score for h in hyps]),  # ROOT
        )

    def init_hyp(self, enc) -> BatchHypothesis:
        start = torch.tensor([self.sos], device=enc.device)
        return self.batchfy([Hypothesis(yseq=start, score=-0.1 * i) for i in range(self.beam)])

    def select(self, hyps: BatchHypothesis, ids) -> BatchHypothesis:
        return BatchHypothesis(
            yseq=hyps.yseq[ids],
            length=hyps.length[ids],
            score=hyps.score[ids],  # RAISE # ALSO
        )

    def step(self, running, enc):
        scores = torch.zeros(self.beam, self.vocab, device=enc.device)
        for name, scorer in self.scorers.items():
            scores += self.weights[name] * scorer.batch_score(running.yseq, enc)
        top, flat = scores.view(-1).topk(self.beam)
        prev = torch.div(flat, self.vocab, rounding_mode="floor")
        chosen = self.select(running, prev)
        yseq = torch.cat([chosen.yseq, (flat % self.vocab).unsqueeze(1)], dim=1)
        return BatchHypothesis(yseq, chosen.score + top, chosen.length + 1)

    def forward(self, enc, maxlen=4):
        enc = enc.expand(self.beam, -1, -1)
        running = self.init_hyp(enc)
        for _ in range(maxlen):
            running = self.step(running, enc)
        best = int(running.score.argmax())
        return running.yseq[best].tolist(), running.score[best].item()


class Speech2Text:
    def __init__(self, device="cpu", beam=3, vocab=12):
        self.device = device
        self.encoder = nn.Linear(5, 8).to(device)
        scorers = {"decoder": AttentionScorer(vocab), "lm": AttentionScorer(vocab)}
        search = BatchSearch(scorers, {"decoder": 0.7, "lm": 0.3}, beam, vocab, 0, 1)
        self.search = search.to(device).eval()

    @torch.no_grad()
    def __call__(self, speech):
        enc = self.encoder(speech.unsqueeze(0).to(self.device))
        return self.search(enc)


if __name__ == "__main__":
    s2t = Speech2Text(device="cuda" if torch.cuda.is_available() else "cpu")
    print(s2t(torch.randn(7, 5)))
