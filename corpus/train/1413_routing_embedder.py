# source: tianyi-lab/MoE-Embedding#3
# mechanism: an embedder that reads the routing weights of experts loads its model on the GPU and hands it token ids as the tokenizer made them
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


class HashTokenizer:
    def __init__(self, vocab=40, max_length=12):
        self.vocab, self.max_length = vocab, max_length

    def token(self, word):
        return 1 + sum(ord(c) * (i + 1) for i, c in enumerate(word)) % (self.vocab - 1)

    def __call__(self, texts):
        rows = [[self.token(w) for w in t.split()][: self.max_length] for t in texts]
        width = max(len(r) for r in rows)
        ids = torch.tensor([r + [0] * (width - len(r)) for r in rows])
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}


class SparseBlock(nn.Module):
    def __init__(self, dim, experts, k=2):
        super().__init__()
        self.gate = nn.Linear(dim, experts, bias=False)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(experts)])
        self.k = k

    def forward(self, x):
        flat = x.flatten(0, 1)
        routing = self.gate(flat).softmax(-1)
        weight, chosen = routing.topk(self.k, dim=-1)
        out = torch.zeros_like(flat)
        for i, expert in enumerate(self.experts):
            token, slot = (chosen == i).nonzero(as_tuple=True)
            out.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        return x + out.view_as(x), routing.view(*x.shape[:2], -1)


class MoELanguageModel(nn.Module):
    def __init__(self, vocab=40, dim=8, experts=4, layers=2):
        super().__init__()
        self.embed_tokens = nn.Embedding(vocab, dim, padding_idx=0)
        self.layers = nn.ModuleList([SparseBlock(dim, experts) for _ in range(layers)])

    @property
    def device(self):
        return self.embed_tokens.weight.device

    def forward(self, input_ids, attention_mask):
        x = self.embed_tokens(input_ids)  # RAISE
        routings = []
        for layer in self.layers:
            x, routing = layer(x)
            routings.append(routing)
        keep = attention_mask.unsqueeze(-1).to(x.dtype)
        return x * keep, [r * keep for r in routings]


class MOEE:
    """Joins the last hidden state with the routing weights of all layers."""

    def __init__(self, model, tokenizer, device=None):
        device = device or ("cuda" if torch.cuda.is_available() else "cpu")
        self.model = model.to(device).eval()
        self.tokenizer = tokenizer

    @torch.no_grad()
    def encode(self, sentences, batch_size=2):
        out = []
        for i in range(0, len(sentences), batch_size):
            inputs = self.tokenizer(sentences[i : i + batch_size])  # ROOT
            hidden, routings = self.model(**inputs)  # ALSO
            last = inputs["attention_mask"].sum(1) - 1
            rows = torch.arange(len(last), device=hidden.device)
            state = F.normalize(hidden[rows, last.to(hidden.device)], dim=-1)
            weights = torch.cat([r.sum(1) for r in routings], dim=-1)
            out.append(torch.cat([state, F.normalize(weights, dim=-1)], dim=-1).cpu())
        return torch.cat(out)


def evaluate_pairs(embedder, pairs):
    left, right = embedder.encode([a for a, _ in pairs]), embedder.encode([b for _, b in pairs])
    return F.cosine_similarity(left, right).tolist()


if __name__ == "__main__":
    embedder = MOEE(MoELanguageModel(), HashTokenizer())
    pairs = [("a small cat", "the cat is small"), ("trains run late", "rain falls"), ("one", "two")]
    print(evaluate_pairs(embedder, pairs))
