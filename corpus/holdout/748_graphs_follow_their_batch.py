# source: pyg-team/pytorch_geometric#3213, fix PR#3214
# mechanism: [factory call without device=] collating graphs that are already on the GPU concatenates their attributes there, but the vector that says which node belongs to which graph is made on the CPU
# phase: readout, after the message passing; failing op: aten::index_add_ (argument index)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def collate(graphs):
    out, sizes = {}, [g["x"].size(0) for g in graphs]
    out["x"] = torch.cat([g["x"] for g in graphs], dim=0)
    offsets = [sum(sizes[:i]) for i in range(len(sizes))]
    out["edge_index"] = torch.cat([g["edge_index"] + o for g, o in zip(graphs, offsets)], dim=1)
    out["batch"] = torch.cat([torch.full((n,), i) for i, n in enumerate(sizes)])  # ROOT
    out["num_graphs"] = len(graphs)
    return out


def global_add_pool(x, batch, size):
    return x.new_zeros(size, x.size(1)).index_add_(0, batch, x)  # RAISE


class GraphClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin, self.head = nn.Linear(3, 8), nn.Linear(8, 2)

    def forward(self, data):
        row, col = data["edge_index"]
        h = self.lin(data["x"])
        h = h.relu() + torch.zeros_like(h).index_add_(0, col, h[row])
        return self.head(global_add_pool(h, data["batch"], data["num_graphs"]))


graphs = [{"x": torch.ones(n, 3, device=dev), "edge_index": torch.tensor([[0, 1], [1, 0]], device=dev)} for n in (2, 3)]
model = GraphClassifier().to(dev)
model(collate(graphs))
