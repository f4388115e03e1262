# source: pyg-team/pytorch_geometric PR#5207
# mechanism: [data not moved] the random walks are moved to the device in the training loop, the node indices for the evaluation come straight from the data set and are not
# phase: evaluation after training; failing op: aten::index_select (cuda table, cpu index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)

class MetaPath2Vec(nn.Module):
    def __init__(self, num_nodes, dim):
        super().__init__()
        self.start, count = {}, 0
        for key, n in num_nodes.items():
            self.start[key] = (count, count + n)
            count += n
        self.embedding = nn.Embedding(count, dim)

    def forward(self, node_type, batch=None):
        emb = self.embedding.weight[slice(*self.start[node_type])]
        return emb if batch is None else emb.index_select(0, batch)  # RAISE  # ALSO

    def loss(self, pos, neg):
        p, n = ((h[:, :1] * h[:, 1:]).sum(-1).sigmoid() for h in (self.embedding(pos), self.embedding(neg)))
        return -(p + 1e-15).log().mean() - (1 - n + 1e-15).log().mean()

def train(model, walks, opt, device):
    for pos, neg in walks:
        opt.zero_grad()
        model.loss(pos.to(device), neg.to(device)).backward()
        opt.step()

@torch.no_grad()
def test(model, data):
    z = model("author", batch=data["y_index"])  # ROOT
    y = data["y"].to(z.device)
    centers = torch.stack([z[y == c].mean(0) for c in range(2)])
    return (torch.cdist(z, centers).argmin(1) == y).float().mean().item()

data = {"y_index": torch.tensor([0, 2, 3, 4]), "y": torch.tensor([0, 1, 0, 1])}
model = MetaPath2Vec({"author": 5, "paper": 7}, 4).to(dev)
walks = [(torch.randint(0, 12, (6, 4)), torch.randint(0, 12, (6, 4))) for _ in range(2)]
train(model, walks, torch.optim.SGD(model.parameters(), lr=0.1), dev)
test(model, data)
