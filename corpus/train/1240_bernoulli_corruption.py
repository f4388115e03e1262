# source: torchkge-team/torchkge#251
# mechanism: a sampler's table of probabilities for each relation lies on the host and is indexed by a batch of relations on the device
# expect: raises
from typing import Iterator, Optional, Tuple

import torch
from torch import nn

Facts = Tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class KnowledgeGraph:
    def __init__(self, heads: torch.Tensor, tails: torch.Tensor, relations: torch.Tensor, n_ent: int, n_rel: int):
        self.head_idx, self.tail_idx, self.relations = heads, tails, relations
        self.n_ent, self.n_rel = n_ent, n_rel

    def __len__(self) -> int:
        return len(self.head_idx)


class FactLoader:
    def __init__(self, kg: KnowledgeGraph, batch_size: int, use_cuda: Optional[str] = None):
        self.h, self.t, self.r = kg.head_idx, kg.tail_idx, kg.relations
        self.batch_size, self.use_cuda = batch_size, use_cuda
        if use_cuda == "all":
            self.h, self.t, self.r = self.h.cuda(), self.t.cuda(), self.r.cuda()

    def __iter__(self) -> Iterator[Facts]:
        for start in range(0, len(self.h), self.batch_size):
            batch = tuple(x[start: start + self.batch_size] for x in (self.h, self.t, self.r))
            yield tuple(x.cuda() for x in batch) if self.use_cuda == "batch" else batch


class NegativeSampler:
    def __init__(self, kg: KnowledgeGraph, n_neg: int = 1):
        self.kg, self.n_neg = kg, n_neg

    def corrupt_batch(self, heads: torch.Tensor, tails: torch.Tensor, relations: torch.Tensor):
        raise NotImplementedError


class BernoulliNegativeSampler(NegativeSampler):
    def __init__(self, kg: KnowledgeGraph, n_neg: int = 1):
        super().__init__(kg, n_neg)
        self.bern_probs = self.evaluate_probabilities()

    def evaluate_probabilities(self) -> torch.Tensor:
        probs = []
        for rel in range(self.kg.n_rel):
            mask = self.kg.relations == rel
            tph = mask.sum() / self.kg.head_idx[mask].unique().numel() if mask.any() else 1.0
            hpt = mask.sum() / self.kg.tail_idx[mask].unique().numel() if mask.any() else 1.0
            probs.append(float(tph / (tph + hpt)))
        return torch.tensor(probs)

    def corrupt_batch(self, heads: torch.Tensor, tails: torch.Tensor, relations: torch.Tensor):
        device = heads.device
        neg_heads = heads.repeat(self.n_neg)
        neg_tails = tails.repeat(self.n_neg)
        probs = self.bern_probs[relations]  # RAISE # ROOT
        mask = torch.bernoulli(probs.repeat(self.n_neg)).bool()
        n_heads = int(mask.sum())
        neg_heads[mask] = torch.randint(0, self.kg.n_ent, (n_heads,), device=device)
        neg_tails[~mask] = torch.randint(0, self.kg.n_ent, (len(mask) - n_heads,), device=device)
        return neg_heads, neg_tails


class TransE(nn.Module):
    def __init__(self, dim: int, n_ent: int, n_rel: int):
        super().__init__()
        self.ent, self.rel = nn.Embedding(n_ent, dim), nn.Embedding(n_rel, dim)

    def score(self, h: torch.Tensor, t: torch.Tensor, r: torch.Tensor) -> torch.Tensor:
        return -(self.ent(h) + self.rel(r) - self.ent(t)).norm(dim=-1)

    def forward(self, h, t, r, nh, nt) -> Tuple[torch.Tensor, torch.Tensor]:
        n_neg = len(nh) // len(h)
        return self.score(h, t, r).repeat(n_neg), self.score(nh, nt, r.repeat(n_neg))

    @torch.no_grad()
    def normalize_parameters(self) -> None:
        self.ent.weight.copy_(nn.functional.normalize(self.ent.weight, dim=-1))


def main() -> None:
    use_cuda = torch.cuda.is_available()
    gen = torch.Generator().manual_seed(7)
    draw = lambda high: torch.randint(0, high, (80,), generator=gen)
    kg = KnowledgeGraph(draw(20), draw(20), draw(4), 20, 4)
    model = TransE(10, kg.n_ent, kg.n_rel)
    if use_cuda:
        model.cuda()
    criterion = nn.MarginRankingLoss(margin=0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    sampler = BernoulliNegativeSampler(kg, n_neg=2)
    loader = FactLoader(kg, batch_size=32, use_cuda="all" if use_cuda else None)
    for h, t, r in loader:
        n_h, n_t = sampler.corrupt_batch(h, t, r)
        positive, negative = model(h, t, r, n_h, n_t)
        loss = criterion(positive, negative, torch.ones_like(positive))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        model.normalize_parameters()
    print("loss", loss.item())


if __name__ == "__main__":
    main()
