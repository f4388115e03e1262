# source: gicheonkang/gst-visdial#5
# mechanism: a relevance table that stays on the CPU is indexed with rankings that were computed from scores on the GPU
# expect: raises
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class DialogDataset(Dataset):
    def __init__(self, n=6, options=5, dim=4):
        gen = torch.Generator().manual_seed(2)
        self.context = torch.randn(n, dim, generator=gen)
        self.options = torch.randn(n, options, dim, generator=gen)
        self.relevance = torch.rand(n, options, generator=gen).round(decimals=1)
        self.answer = self.relevance.argmax(1)

    def __len__(self):
        return len(self.context)

    def __getitem__(self, i):
        return {
            "context": self.context[i],
            "options": self.options[i],
            "gt_relevance": self.relevance[i],
            "answer": self.answer[i],
        }


class OptionScorer(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)

    def forward(self, context, options):
        return torch.einsum("bd,bod->bo", self.query(context), self.key(options))


def scores_to_ranks(scores):
    order = scores.sort(dim=-1, descending=True).indices
    ranks = torch.empty_like(order)
    positions = torch.arange(order.shape[-1], device=order.device).expand_as(order)
    return ranks.scatter_(-1, order, positions)


class SparseGTMetrics:
    def __init__(self):
        self.ranks = []

    def observe(self, scores, answer):
        ranks = scores_to_ranks(scores.detach())
        self.ranks.extend((ranks.gather(1, answer.view(-1, 1)).squeeze(1) + 1).cpu().tolist())

    def retrieve(self):
        return {"mrr": sum(1.0 / r for r in self.ranks) / len(self.ranks)}


class NDCG:
    def __init__(self):
        self.numerator, self.denominator = 0.0, 0

    def observe(self, scores, relevance):
        scores = scores.detach()  # ROOT
        for row, rel in zip(scores, relevance):
            k = int((rel > 0).sum())
            rankings = row.argsort(descending=True)[:k]  # ALSO
            ideal = rel.argsort(descending=True)[:k]
            self.numerator += self._dcg(rankings, rel) / max(self._dcg(ideal, rel), 1e-9)
            self.denominator += 1

    @staticmethod
    def _dcg(rankings, relevance):
        gains = relevance[rankings].float()  # RAISE # ALSO
        discounts = torch.log2(torch.arange(len(gains)).float() + 2)
        return float((gains / discounts).sum())

    def retrieve(self):
        return {"ndcg": self.numerator / max(self.denominator, 1)}


@torch.no_grad()
def evaluate(model, loader, device):
    model.eval()
    sparse, ndcg = SparseGTMetrics(), NDCG()
    for batch in loader:
        relevance = batch.pop("gt_relevance")
        batch = {k: v.to(device) for k, v in batch.items()}
        output = model(batch["context"], batch["options"])
        sparse.observe(output, batch["answer"])
        ndcg.observe(output, relevance)  # ALSO
    return {**sparse.retrieve(), **ndcg.retrieve()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = OptionScorer().to(device)
    print(evaluate(model, DataLoader(DialogDataset(), batch_size=3), device))


if __name__ == "__main__":
    main()
