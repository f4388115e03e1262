# source: pyg-team/pytorch_geometric#629
# mechanism: a graph without edges takes a path that makes new indices on the CPU, which are then joined with self loops on the GPU
# expect: raises
import torch
from torch import nn


def coalesce(edge_index, num_nodes):
    if edge_index.numel() == 0:
        return torch.empty(2, 0, dtype=torch.long)  # ROOT
    key = edge_index[0] * num_nodes + edge_index[1]
    key = torch.unique(key)
    return torch.stack([key // num_nodes, key % num_nodes])


def remove_self_loops(edge_index):
    return edge_index[:, edge_index[0] != edge_index[1]]


def add_self_loops(edge_index, x):
    loops = torch.arange(x.shape[0], device=x.device)
    return torch.cat([edge_index, loops.expand(2, -1)], dim=1)  # RAISE # ALSO


class EdgeConv(nn.Module):
    def __init__(self, inp, out):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * inp, out), nn.ReLU(), nn.Linear(out, out))

    def forward(self, x, edge_index):
        edge_index = coalesce(remove_self_loops(edge_index), x.shape[0])  # ALSO
        src, dst = add_self_loops(edge_index, x)
        message = self.mlp(torch.cat([x[dst], x[src] - x[dst]], dim=-1))
        out = torch.zeros(x.shape[0], message.shape[1], device=x.device)
        count = torch.zeros(x.shape[0], 1, device=x.device)
        out = out.index_add(0, dst, message)
        count = count.index_add(0, dst, torch.ones_like(message[:, :1]))
        return out / count.clamp(min=1)


class TrackNet(nn.Module):
    def __init__(self, inp=4, hidden=8):
        super().__init__()
        self.conv1 = EdgeConv(inp, hidden)
        self.conv2 = EdgeConv(hidden, hidden)
        self.fc = nn.Linear(hidden, 1)

    def forward(self, data):
        x, edge_index = data["x"], data["edge_index"]
        x = self.conv2(self.conv1(x, edge_index), edge_index)
        return self.fc(x.mean(0))


def build_graph(detections, max_dist):
    dist = torch.cdist(detections[:, :2], detections[:, :2])
    pairs = (dist < max_dist).nonzero().t()
    return {"x": detections, "edge_index": pairs[:, pairs[0] != pairs[1]]}


def to_device(data, device):
    return {k: v.to(device) for k, v in data.items()}


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    model = TrackNet().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    crowded, lonely = torch.rand(6, 4), torch.rand(1, 4)
    for detections, target in ((crowded, 1.0), (lonely, 0.0)):
        data = to_device(build_graph(detections, 0.5), device)
        logit = model(data)
        loss = nn.functional.binary_cross_entropy_with_logits(logit, logit.new_full((1,), target))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    main()
