# source: https://github.com/Lightning-AI/torchmetrics/issues/608
# mechanism: a metric with buffers is made by the training loop and never moved; it adds a number of the GPU to its own in place
# phase: first step; failing op: aten::add_.Tensor
# expect: raises
import torch
from torch import nn


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.tensor(0.0))
        self.register_buffer("seen", torch.tensor(0))

    def forward(self, value, count):
        self.total.add_(value.detach() * count)  # RAISE
        self.seen.add_(count)
        return self.total / self.seen


def train_epoch(net, batches, optimizer, device):
    net.train()
    average = Average()  # ROOT
    criterion = nn.MSELoss()
    for inputs, targets in batches:
        inputs, targets = inputs.to(device), targets.to(device)
        loss = criterion(net(inputs), targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        shown = average(loss, len(inputs))  # ALSO
    return shown


net = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1)).cuda()
optimizer = torch.optim.Adam(net.parameters())
batches = [(torch.randn(6, 5), torch.randn(6, 1)) for _ in range(3)]
print(train_epoch(net, batches, optimizer, torch.device("cuda")))
