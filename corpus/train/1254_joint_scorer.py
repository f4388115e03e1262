# source: speechbrain/speechbrain#2804
# mechanism: the output layer that a beam-search scorer uses is not in the container of modules that is moved to the device, so the scorer meets encoder states of another device
# expect: raises
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, n_feats, d_model):
        super().__init__()
        self.proj = nn.Linear(n_feats, d_model)
        self.rnn = nn.GRU(d_model, d_model, batch_first=True)

    def forward(self, x):
        return self.rnn(torch.relu(self.proj(x)))[0]


class Decoder(nn.Module):
    def __init__(self, vocab, d_model):
        super().__init__()
        self.emb = nn.Embedding(vocab, d_model)
        self.cell = nn.GRUCell(2 * d_model, d_model)
        self.out = nn.Linear(d_model, vocab)

    def forward(self, tokens, state, context):
        state = self.cell(torch.cat([self.emb(tokens), context], -1), state)
        return torch.log_softmax(self.out(state), -1), state


class CTCScorer:
    def __init__(self, ctc_fc, weight=0.4):
        self.ctc_fc = ctc_fc
        self.weight = weight

    def reset_mem(self, enc_states):
        logits = self.ctc_fc(enc_states)  # RAISE
        return torch.log_softmax(logits, -1).mean(1)

    def score(self, log_probs, memory):
        return (1 - self.weight) * log_probs + self.weight * memory


class GreedySearcher:
    def __init__(self, decoder, scorer, bos=0, max_steps=4):
        self.decoder, self.scorer = decoder, scorer
        self.bos, self.max_steps = bos, max_steps

    def __call__(self, enc_states):
        batch = enc_states.shape[0]
        tokens = torch.full((batch,), self.bos, dtype=torch.long, device=enc_states.device)
        state = enc_states.new_zeros(batch, enc_states.shape[-1])
        memory = self.scorer.reset_mem(enc_states)
        hyps = []
        for _ in range(self.max_steps):
            log_probs, state = self.decoder(tokens, state, enc_states.mean(1))
            tokens = self.scorer.score(log_probs, memory).argmax(-1)
            hyps.append(tokens)
        return torch.stack(hyps, 1)


def load_hparams(vocab=10, d_model=16):
    h = {"encoder": Encoder(8, d_model), "decoder": Decoder(vocab, d_model), "ctc_lin": nn.Linear(d_model, vocab)}
    h["scorer"] = CTCScorer(h["ctc_lin"])
    h["searcher"] = GreedySearcher(h["decoder"], h["scorer"])
    h["modules"] = {"encoder": h["encoder"], "decoder": h["decoder"]}  # ROOT
    return h


class EncoderDecoderASR:
    def __init__(self, hparams, device):
        self.device = torch.device(device)
        self.hparams = hparams
        self.mods = nn.ModuleDict(hparams["modules"]).to(self.device)  # ALSO
        self.mods.eval()

    @torch.no_grad()
    def transcribe_batch(self, feats):
        enc_states = self.mods["encoder"](feats.to(self.device))
        return self.hparams["searcher"](enc_states)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    asr = EncoderDecoderASR(load_hparams(), device)
    hyps = asr.transcribe_batch(torch.randn(2, 12, 8))
    print(hyps.cpu().tolist())


if __name__ == "__main__":
    main()
