# source: dvruette/figaro#11
# mechanism: state variables of a sampling loop start as CPU tensors and are compared with values that come from GPU token ids
# expect: raises
import torch
from torch import nn

BAR, EOS = 2, 1


class MusicModel(nn.Module):
    def __init__(self, vocab=24, dim=16, max_bars=8):
        super().__init__()
        self.tok = nn.Embedding(vocab, dim)
        self.bar = nn.Embedding(max_bars + 1, dim)
        self.gru = nn.GRU(dim, dim, batch_first=True)
        self.head = nn.Linear(dim, vocab)
        self.max_bars = max_bars

    def forward(self, tokens, bar_ids, cond):
        x = self.tok(tokens) + self.bar(bar_ids.clamp(max=self.max_bars)) + cond.unsqueeze(1)
        return self.head(self.gru(x)[0])


class DescriptionEncoder(nn.Module):
    def __init__(self, n_items=10, dim=16):
        super().__init__()
        self.emb = nn.Embedding(n_items, dim)

    def forward(self, items):
        return self.emb(items).mean(1)


def top_k_filter(logits, k):
    kth = logits.topk(k, dim=-1).values[..., -1:]
    return logits.masked_fill(logits < kth, float("-inf"))


class Seq2SeqSampler:
    def __init__(self, model, encoder, device):
        self.model, self.encoder, self.device = model.to(device).eval(), encoder.to(device).eval(), device

    def initial_state(self, batch_size):
        tokens = torch.full((batch_size, 1), BAR, dtype=torch.long, device=self.device)
        bar_ids = torch.ones_like(tokens)
        curr_bars = torch.zeros(batch_size, dtype=torch.long)  # ROOT
        return tokens, bar_ids, curr_bars  # ALSO

    def describe(self, descriptions, bars):
        index = bars.clamp(max=descriptions.shape[1] - 1)
        rows = torch.arange(len(index), device=index.device)
        return self.encoder(descriptions[rows, index])

    @torch.no_grad()
    def sample(self, descriptions, max_length=10, k=5):
        descriptions = descriptions.to(self.device)
        tokens, bar_ids, curr_bars = self.initial_state(len(descriptions))
        cond = self.describe(descriptions, bar_ids[:, -1])
        for _ in range(max_length):
            next_bars = bar_ids[:, -1]
            if not (next_bars == curr_bars).all():  # RAISE # ALSO
                cond = self.describe(descriptions, next_bars)
                curr_bars = next_bars
            logits = self.model(tokens, bar_ids, cond)[:, -1]
            probs = top_k_filter(logits, k).softmax(-1)
            token = torch.multinomial(probs, 1)
            tokens = torch.cat([tokens, token], 1)
            bar_ids = torch.cat([bar_ids, bar_ids[:, -1:] + (token == BAR).long()], 1)
            if (token == EOS).all():
                break
        return tokens


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sampler = Seq2SeqSampler(MusicModel(), DescriptionEncoder(), device)
    descriptions = torch.randint(0, 10, (2, 4, 3))
    print(sampler.sample(descriptions).cpu().tolist())


if __name__ == "__main__":
    main()
