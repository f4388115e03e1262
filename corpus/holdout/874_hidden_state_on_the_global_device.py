# source: rociomer/dl-chem-101#10
# mechanism: [factory call without device=] hidden state is placed by a global get_device() that asks whether a GPU exists, while this model was loaded on the CPU
# phase: sampling; failing op: aten::gru ('Input and hidden tensors are not at the same device')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


def get_device():
    return "cuda" if torch.cuda.is_available() else "cpu"

class RNN(nn.Module):
    def __init__(self, voc, dim):
        super().__init__()
        self.dim = dim
        self.embedding = nn.Embedding(voc, dim)
        self.rnn = nn.GRU(dim, dim, batch_first=True)
        self.linear = nn.Linear(dim, voc)

    def forward(self, tokens, hidden=None):
        if hidden is None:
            hidden = torch.zeros(1, tokens.shape[0], self.dim, device=get_device())  # ROOT
        out, hidden = self.rnn(self.embedding(tokens), hidden)  # RAISE
        return self.linear(out), hidden

trained = RNN(6, 4).to(dev)
trained(torch.zeros(2, 3, dtype=torch.long, device=dev))
weights = {k: v.cpu() for k, v in trained.state_dict().items()}
net = RNN(6, 4)
net.load_state_dict(weights)
logits, _ = net(torch.zeros(2, 1, dtype=torch.long))
