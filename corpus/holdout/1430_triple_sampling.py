# source: torchkge-team/torchkge#246
# mechanism: a sampler keeps probabilities per relation on the CPU, and a batch of relations on the GPU looks them up
# expect: raises
import torch
from torch import nn


class KnowledgeGraph:
    def __init__(self, heads, relations, tails, n_ent, n_rel):
        self.heads, self.relations, self.tails = heads, relations, tails
        self.n_ent, self.n_rel = n_ent, n_rel

    def batches(self, size):
        for i in range(0, len(self.heads), size):
            s = slice(i, i + size)
            yield self.heads[s], self.tails[s], self.relations[s]


def bernoulli_probs(kg):
    probs = []
    for r in range(kg.n_rel):
        rows = kg.relations == r
        heads, tails = kg.heads[rows], kg.tails[rows]
        tph = len(tails) / max(len(heads.unique()), 1)
        hpt = len(heads) / max(len(tails.unique()), 1)
        probs.append(tph / (tph + hpt) if tph + hpt > 0 else 0.5)
    return torch.tensor(probs).float()


class UniformSampler:
    def __init__(self, kg, n_neg=1):
        self.n_ent, self.n_neg = kg.n_ent, n_neg

    def corrupt_batch(self, heads, tails, relations):
        device = heads.device
        neg_heads, neg_tails = heads.repeat(self.n_neg), tails.repeat(self.n_neg)
        mask = self.choose(relations, device)
        n = int(mask.sum())
        neg_heads[mask] = torch.randint(0, self.n_ent, (n,), device=device)
        neg_tails[~mask] = torch.randint(0, self.n_ent, (len(mask) - n,), device=device)
        return neg_heads, neg_tails

    def choose(self, relations, device):
        return torch.rand(len(relations) * self.n_neg, device=device) < 0.5


class BernoulliSampler(UniformSampler):
    def __init__(self, kg, n_neg=1):
        super().__init__(kg, n_neg)
        self.bern_probs = bernoulli_probs(kg)

    def choose(self, relations, device):
        probs = self.bern_probs[relations]  # RAISE # ROOT
        return torch.bernoulli(probs.repeat(self.n_neg)).bool()


class TransE(nn.Module):
    def __init__(self, dim, n_ent, n_rel):
        super().__init__()
        self.ent, self.rel = nn.Embedding(n_ent, dim), nn.Embedding(n_rel, dim)

    def score(self, h, t, r):
        return -(self.ent(h) + self.rel(r) - self.ent(t)).norm(dim=-1)

    def forward(self, h, t, r, neg_h, neg_t):
        repeat = len(neg_h) // len(h)
        return self.score(h, t, r).repeat(repeat), self.score(neg_h, neg_t, r.repeat(repeat))


def train(kg, device, epochs=1):
    model = TransE(8, kg.n_ent, kg.n_rel).to(device)
    sampler = BernoulliSampler(kg, n_neg=2)  # ALSO
    criterion = nn.MarginRankingLoss(0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(epochs):
        for h, t, r in kg.batches(8):
            h, t, r = h.to(device), t.to(device), r.to(device)
            neg_h, neg_t = sampler.corrupt_batch(h, t, r)
            pos, neg = model(h, t, r, neg_h, neg_t)
            loss = criterion(pos, neg, torch.ones_like(pos))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


if __name__ == "__main__":
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    facts = torch.randint(0, 10, (20,)), torch.randint(0, 3, (20,)), torch.randint(0, 10, (20,))
    print(train(KnowledgeGraph(*facts, 10, 3), device))
