# source: dotnet/TorchSharp#591 (GRU.forward without h0: torch.zeros(..., device: input.device))
# mechanism: [hidden state made in forward] a wrapper makes the initial state that its caller leaves out, without a device
# phase: forward; failing op: aten::gru
# expect: raises
# root: GRU.forward: h0 = torch.zeros(new long[] {...})
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


class Recurrent(nn.Module):
    def __init__(self, inp, hidden, layers=1, bidirectional=False, batch_first=True):
        super().__init__()
        self.rnn = nn.GRU(inp, hidden, layers, batch_first=batch_first, bidirectional=bidirectional)

    def initial(self, batch):
        dirs = 2 if self.rnn.bidirectional else 1
        return torch.zeros(dirs * self.rnn.num_layers, batch, self.rnn.hidden_size)   # ROOT

    def forward(self, x, h0=None):
        if h0 is None:
            h0 = self.initial(x.size(0) if self.rnn.batch_first else x.size(1))  # ALSO
        return self.rnn(x, h0)                         # RAISE


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.memory, self.policy = Recurrent(3, 4, bidirectional=True), nn.Linear(8, 2)

    def forward(self, obs, state=None):
        out, state = self.memory(obs, state)
        return self.policy(out[:, -1]), state

agent = Agent().to(dev)
logits, state = agent(torch.zeros(2, 5, 3, device=dev))
