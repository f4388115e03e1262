# source: benedekrozemberczki/pytorch_geometric_temporal#18
# mechanism: when no hidden state is given the recurrent graph cell makes zeros on the host and concatenates them with node features on the GPU
# expect: raises
import torch
from torch import nn


class DiffusionConv(nn.Module):
    def __init__(self, in_channels, out_channels, hops):
        super().__init__()
        self.hops = hops
        self.weight = nn.Parameter(torch.empty(hops + 1, in_channels, out_channels))
        self.bias = nn.Parameter(torch.zeros(out_channels))
        nn.init.xavier_uniform_(self.weight)

    def propagate(self, x, edge_index, edge_weight):
        source, target = edge_index
        degree = torch.zeros(len(x), device=x.device).index_add(0, source, edge_weight)
        message = x[source] * (edge_weight / degree[source].clamp(min=1e-6))[:, None]
        return torch.zeros_like(x).index_add(0, target, message)

    def forward(self, x, edge_index, edge_weight):
        out = x @ self.weight[0]
        for hop in range(1, self.hops + 1):
            x = self.propagate(x, edge_index, edge_weight)
            out = out + x @ self.weight[hop]
        return out + self.bias


class GraphGRU(nn.Module):
    def __init__(self, in_channels, out_channels, hops=2):
        super().__init__()
        self.out_channels = out_channels
        make = lambda: DiffusionConv(in_channels + out_channels, out_channels, hops)
        self.update, self.reset, self.candidate = make(), make(), make()

    def _set_hidden_state(self, X, H):
        if H is None:
            H = torch.zeros(X.shape[0], self.out_channels)  # ROOT
        return H  # ALSO

    def _gate(self, conv, X, H, edges):
        return conv(torch.cat([X, H], dim=1), *edges)  # RAISE

    def forward(self, X, edge_index, edge_weight, H=None):
        H = self._set_hidden_state(X, H)  # ALSO
        edges = (edge_index, edge_weight)
        Z = torch.sigmoid(self._gate(self.update, X, H, edges))
        R = torch.sigmoid(self._gate(self.reset, X, H, edges))
        candidate = torch.tanh(self._gate(self.candidate, X, R * H, edges))
        return Z * H + (1 - Z) * candidate


class TrafficModel(nn.Module):
    def __init__(self, features, hidden=12):
        super().__init__()
        self.cell = GraphGRU(features, hidden)
        self.linear = nn.Linear(hidden, 1)

    def forward(self, frames, edge_index, edge_weight):
        state = None  # ALSO
        for frame in frames:
            state = self.cell(frame, edge_index, edge_weight, state)
        return self.linear(torch.relu(state)).squeeze(-1)


class RingDataset:
    def __init__(self, nodes=7, features=3, length=4):
        ring = torch.arange(nodes)
        self.edge_index = torch.stack([ring, (ring + 1) % nodes])
        self.edge_weight = torch.linspace(0.5, 1.5, nodes)
        self.frames = torch.randn(length, nodes, features)
        self.target = self.frames.mean((0, 2))

    def to(self, device):
        return tuple(t.to(device) for t in (self.frames, self.edge_index, self.edge_weight, self.target))


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda")
    model = TrafficModel(3).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    frames, edge_index, edge_weight, target = RingDataset().to(device)
    for epoch in range(3):
        loss = (model(frames, edge_index, edge_weight) - target).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print("loss", loss.item())
