# source: clean control, must not be reported
# mechanism: none; batches are prefetched on a side stream that the compute stream waits for, pinned buffers are refilled only after their event, results are read after theirs, and a second GPU gets its share by explicit copies
# phase: n/a
# expect: clean
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


d1 = torch.device("cuda", 1)
class Prefetcher:
    def __init__(self, batches, shape):
        self.batches = iter(batches)
        self.side = torch.cuda.Stream(dev)
        self.slots = [(torch.empty(shape, pin_memory=True), torch.cuda.Event()) for _ in range(2)]
        self.turn = 0

    def load(self):
        batch = next(self.batches, None)
        if batch is None:
            return None
        host, free = self.slots[self.turn % 2]
        self.turn += 1
        free.synchronize()
        host.copy_(batch)
        with torch.cuda.stream(self.side):
            x = host.to(dev, non_blocking=True)
            free.record(self.side)
        return x

    def __iter__(self):
        compute = torch.cuda.current_stream(dev)
        while (x := self.load()) is not None:
            compute.wait_stream(self.side)
            x.record_stream(compute)
            yield x

net, twin = nn.Linear(3, 2).to(dev), nn.Linear(3, 2).to(d1)
results = torch.empty(4, 2, pin_memory=True)
done = torch.cuda.Event()
total = 0.0
for x in Prefetcher([torch.randn(4, 3) for _ in range(5)], (4, 3)):
    with torch.no_grad():
        y = net(x) + twin(x.to(d1)).to(dev)
    results.copy_(y, non_blocking=True)
    done.record(torch.cuda.current_stream(dev))
    done.synchronize()
    total += results.sum().item()
