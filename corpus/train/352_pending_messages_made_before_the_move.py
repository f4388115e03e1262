# source: https://github.com/pyg-team/pytorch_geometric/issues/8926, https://github.com/pyg-team/pytorch_geometric/pull/7028
# mechanism: a memory of nodes keeps pending messages in a list that its constructor fills with empty ones made like a buffer; .to() moves the buffer
# phase: forward; aten::cat
# expect: raises
import torch

device = torch.device("cuda")


class NodeMemory(torch.nn.Module):
    def __init__(self, nodes, width, features):
        super().__init__()
        self.features = features
        self.register_buffer("state", torch.zeros(nodes, width))
        self.update = torch.nn.GRUCell(features, width)
        self.forget()

    def forget(self):
        self.state.zero_()
        nothing = self.state.new_empty(0, self.features)  # ROOT
        self.pending = [(None, nothing)] * len(self.state)  # ALSO

    def remember(self, sources, time, messages):
        for source, message in zip(sources.tolist(), messages):
            self.pending[source] = (time, message[None])

    def forward(self, nodes):
        chosen = [self.pending[node] for node in nodes.tolist()]
        rows = torch.cat([message for _, message in chosen])  # RAISE  # ALSO
        told = torch.tensor([time is not None for time, _ in chosen], device=rows.device)
        state = self.state[nodes].clone()
        state[told] = self.update(rows, state[told])
        return state


torch.manual_seed(0)
memory = NodeMemory(nodes=9, width=4, features=3).to(device)
readout = torch.nn.Bilinear(4, 4, 1).to(device)
optimizer = torch.optim.Adam([*memory.parameters(), *readout.parameters()], lr=1e-2)
for time in range(3):
    sources = torch.randint(0, 9, (4,)).to(device)
    memory.remember(sources, time, torch.randn(4, 3).to(device))
    drawn = torch.randperm(9)[:4].to(device)
    score = readout(memory(sources), memory(drawn))
    optimizer.zero_grad()
    score.sigmoid().mean().backward()
    optimizer.step()
