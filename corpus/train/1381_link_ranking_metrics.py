# source: pyg-team/pytorch_geometric#10808
# mechanism: the buffers of a ranking metric that nobody moves meet a relevance matrix that was built from predictions on the GPU
# expect: raises
import torch
from torch import nn


class LinkPredMetric(nn.Module):
    def __init__(self, k):
        super().__init__()
        self.k = k
        self.accum, self.total = 0.0, 0

    def reset(self):
        self.accum, self.total = 0.0, 0

    @staticmethod
    def relevance(pred_index, edge_label_index, num_dst):
        user, item = edge_label_index
        codes = user * num_dst + item
        rows = torch.arange(pred_index.shape[0], device=pred_index.device).view(-1, 1)
        matrix = torch.isin(rows * num_dst + pred_index, codes.to(pred_index.device))
        counts = torch.bincount(user, minlength=pred_index.shape[0])
        return matrix, counts.to(pred_index.device)

    def update(self, pred_index, edge_label_index, num_dst):
        matrix, counts = self.relevance(pred_index[:, :self.k], edge_label_index, num_dst)
        value = self._compute(matrix, counts)
        self.accum += value.sum().item()
        self.total += int((counts > 0).sum())

    def compute(self):
        return self.accum / max(self.total, 1)

    def _compute(self, matrix, counts):
        raise NotImplementedError


class LinkPredRecall(LinkPredMetric):
    def _compute(self, matrix, counts):
        return matrix.sum(1) / counts.clamp(min=1)


class LinkPredNDCG(LinkPredMetric):
    def __init__(self, k):
        super().__init__(k)
        discount = 1.0 / torch.log2(torch.arange(2, k + 2).float())
        self.register_buffer("discount", discount)
        self.register_buffer("idcg", torch.cat([torch.zeros(1), discount.cumsum(0)]))

    def _compute(self, matrix, counts):
        discount, idcg = self.discount, self.idcg  # ROOT
        dcg = (matrix * discount.view(1, -1)).sum(1)  # RAISE
        best = idcg[counts.clamp(max=self.k)]
        return torch.where(best > 0, dcg / best.clamp(min=1e-9), torch.zeros_like(dcg))


class Recommender(nn.Module):
    def __init__(self, users, items, dim=6):
        super().__init__()
        self.user = nn.Embedding(users, dim)
        self.item = nn.Embedding(items, dim)

    def scores(self):
        return self.user.weight @ self.item.weight.t()

    def loss(self, edges, negatives):
        pos = (self.user(edges[0]) * self.item(edges[1])).sum(1)
        neg = (self.user(edges[0]) * self.item(negatives)).sum(1)
        return nn.functional.softplus(neg - pos).mean()


def train(model, edges, num_items, device, steps=3):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(steps):
        loss = model.loss(edges, torch.randint(0, num_items, (edges.shape[1],), device=device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def evaluate(model, edges, num_items, metrics):
    top = model.scores().topk(4, dim=1).indices
    for metric in metrics:
        metric.reset()
        metric.update(top, edges, num_items)
    return {type(m).__name__: round(m.compute(), 3) for m in metrics}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    users, items = 5, 9
    edges = torch.stack([torch.randint(0, users, (14,)), torch.randint(0, items, (14,))])
    model = Recommender(users, items).to(device)
    train(model, edges.to(device), items, device)
    metrics = [LinkPredRecall(3), LinkPredNDCG(3)]  # ALSO
    print(evaluate(model, edges, items, metrics))


if __name__ == "__main__":
    main()
