# source: Atcold/NYU-DLSP20 PR#669
# mechanism: [module never moved] train helper picks the device and moves each batch, nothing moves the model that it is given
# phase: forward; failing op: aten::rnn_tanh ('Input and parameter tensors are not at the same device')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class SimpleRNN(nn.Module):
    def __init__(self, n_in, n_hidden, n_out):
        super().__init__()
        self.rnn = nn.RNN(n_in, n_hidden, batch_first=True)
        self.linear = nn.Linear(n_hidden, n_out)

    def forward(self, x):
        h, _ = self.rnn(x)  # RAISE
        return self.linear(h[:, -1])

def train_and_test(model, batches, criterion, optimizer, device):
    for x, y in batches:  # ALSO
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()

batches = [(torch.randn(4, 6, 3), torch.tensor([0, 1, 1, 0])) for _ in range(2)]
model = SimpleRNN(3, 5, 2)  # ROOT
opt = torch.optim.RMSprop(model.parameters(), lr=1e-3)
train_and_test(model, batches, nn.CrossEntropyLoss(), opt, dev)  # ALSO
