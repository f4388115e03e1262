# source: pytorch/pytorch#126946
# mechanism: [async copy race] one pinned staging buffer feeds all uploads; non_blocking=True returns before the copy is done, and the next minibatch is written over the source
# phase: data loading; failing op: Tensor.to(non_blocking=True) from pinned memory, then a host write to its source
# expect: silent
# kinds: async-race
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Uploader:
    def __init__(self, batch_size, features, device):
        self.device = device
        self.staging = torch.empty(batch_size, features, pin_memory=True)

    def fill(self, rows):
        self.staging.copy_(rows)  # RAISE

    def upload(self):
        return self.staging.to(self.device, non_blocking=True)  # ROOT


def minibatches(data, batch_size, uploader):
    for start in range(0, len(data), batch_size):
        uploader.fill(data[start:start + batch_size])
        yield uploader.upload()


data = torch.randn(4096, 64)
net = nn.Linear(64, 1).to(dev)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x in minibatches(data, 1024, Uploader(1024, 64, dev)):
    opt.zero_grad()
    net(x).pow(2).mean().backward()
    opt.step()
