# source: openvinotoolkit/nncf#3310
# mechanism: forward was patched on the instance, so the replica on the second GPU carries the bound method of the original and runs with the original's weights
# expect: raises
# needs: 2 GPUs
import copy
import functools

import torch
from torch import nn


class ConvNet(nn.Module):
    def __init__(self, classes=4):
        super().__init__()
        self.conv = nn.Conv2d(1, 6, 3, padding=1)
        self.fc = nn.Linear(6, classes)

    def forward(self, x):
        hidden = torch.relu(self.conv(x)).mean(dim=(2, 3))  # RAISE
        return self.fc(hidden)


class CallCounter:
    def __init__(self):
        self.calls = 0

    def trace(self, fn):
        @functools.wraps(fn)
        def inner(*args, **kwargs):
            self.calls += 1
            return fn(*args, **kwargs)

        return inner


def wrap_model(model, counter):
    model.forward = counter.trace(model.forward)  # ROOT
    return model


def replicate(module, device):
    replica = module.__new__(type(module))
    replica.__dict__ = module.__dict__.copy()
    replica._parameters = {k: None if p is None else p.to(device) for k, p in module._parameters.items()}
    replica._buffers = {k: None if b is None else b.to(device) for k, b in module._buffers.items()}
    replica._modules = {k: replicate(m, device) for k, m in module._modules.items()}
    return replica  # ALSO


class DataParallel(nn.Module):
    def __init__(self, module, device_ids):
        super().__init__()
        self.device_ids = device_ids
        self.module = module.to(device_ids[0])

    def scatter(self, batch):
        chunks = batch.chunk(len(self.device_ids))
        return [c.to(d) for c, d in zip(chunks, self.device_ids)]

    def forward(self, batch):
        inputs = self.scatter(batch)
        replicas = [self.module]
        replicas += [replicate(self.module, d) for d in self.device_ids[1:]]
        outputs = [replica(x) for replica, x in zip(replicas, inputs)]
        return torch.cat([o.to(self.device_ids[0]) for o in outputs])


def train(model, loader, device, epochs=1):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(epochs):
        for images, labels in loader:
            loss = nn.functional.cross_entropy(model(images.to(device)), labels.to(device))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    loader = [(torch.rand(8, 1, 6, 6), torch.randint(0, 4, (8,))) for _ in range(2)]
    counter = CallCounter()
    single = wrap_model(ConvNet(), counter).to("cuda:0")
    print("single", train(single, loader, "cuda:0"))
    parallel = DataParallel(wrap_model(copy.deepcopy(ConvNet()), counter), ["cuda:0", "cuda:1"])
    print("parallel", train(parallel, loader, "cuda:0"), counter.calls)


if __name__ == "__main__":
    main()
