# source: pytorch/pytorch#40986 (in-place operation between cpu scalar and gpu scalar throws an error)
# mechanism: [zero-dim scalar] 0-dim CPU accumulator; out of place it would be promoted, but += must write a CUDA sum into CPU memory
# phase: training loop (logging); failing op: aten::add_ (cpu 0-d, cuda 0-d)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Meter:
    def __init__(self):
        self.reset()

    def reset(self):
        self.total = torch.tensor(0.0)  # ROOT
        self.count = 0

    def update(self, value, n):
        self.total += value.detach() * n  # RAISE  # ALSO
        self.count += n

    def mean(self):
        return (self.total / max(self.count, 1)).item()

net, meter = nn.Linear(3, 1).to(dev), Meter()
for epoch in range(2):
    meter.reset()
    for _ in range(2):
        x = torch.randn(4, 3, device=dev)
        meter.update(net(x).pow(2).mean(), len(x))
    meter.mean()
