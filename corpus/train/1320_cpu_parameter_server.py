# source: pytorch/pytorch#53696
# mechanism: workers compute on GPUs and push their gradients as they are to a parameter server that keeps and sums on the CPU
# expect: raises
# needs: 2 GPUs
from collections import OrderedDict

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width=12):
        super().__init__()
        self.hidden = nn.Linear(6, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


class ParameterServer:
    def __init__(self, model, lr, momentum, workers):
        self.params = OrderedDict((k, p.detach().clone()) for k, p in model.named_parameters())
        self.velocity = {k: torch.zeros_like(p) for k, p in self.params.items()}
        self.pending = {k: torch.zeros_like(p) for k, p in self.params.items()}
        self.lr, self.momentum = lr, momentum
        self.workers, self.received = workers, 0
        self.version = 0

    def pull(self, device):
        return self.version, {k: p.to(device) for k, p in self.params.items()}

    def push(self, grads):
        for name, grad in grads.items():
            self.pending[name].add_(grad)  # RAISE # ALSO
        self.received += 1
        if self.received == self.workers:
            self.apply()

    def apply(self):
        for name, param in self.params.items():
            mean = self.pending[name] / self.workers
            self.velocity[name].mul_(self.momentum).add_(mean)
            param.sub_(self.lr * self.velocity[name])
            self.pending[name].zero_()
        self.received = 0
        self.version += 1


class Transport:
    def __init__(self):
        self.sent_bytes = 0

    def send(self, payload):
        self.sent_bytes += sum(t.numel() * t.element_size() for t in payload.values())
        return OrderedDict(payload)  # ALSO


class Worker:
    def __init__(self, rank, server, transport):
        self.rank, self.server, self.transport = rank, server, transport
        self.device = torch.device("cuda", rank)
        self.model = Net().to(self.device)
        self.version = -1

    def refresh(self):
        self.version, state = self.server.pull(self.device)
        self.model.load_state_dict(state)

    def compute_gradients(self, batch):
        inputs, targets = (t.to(self.device) for t in batch)
        self.model.zero_grad()
        loss = nn.functional.mse_loss(self.model(inputs), targets)
        loss.backward()
        return loss.item()

    def step(self, batch):
        self.refresh()
        loss = self.compute_gradients(batch)
        grads = {k: p.grad.detach() for k, p in self.model.named_parameters()}  # ROOT
        self.server.push(self.transport.send(grads))
        return loss


def shard(inputs, targets, rank, world):
    return inputs[rank::world], targets[rank::world]


def main():
    torch.manual_seed(0)
    inputs = torch.randn(16, 6)
    targets = inputs.sum(1, keepdim=True)
    transport = Transport()
    server = ParameterServer(Net(), lr=0.05, momentum=0.9, workers=2)
    workers = [Worker(rank, server, transport) for rank in range(2)]
    for epoch in range(3):
        losses = [w.step(shard(inputs, targets, w.rank, 2)) for w in workers]
        print(epoch, server.version, sum(losses) / len(losses))
    print(transport.sent_bytes)


if __name__ == "__main__":
    main()
