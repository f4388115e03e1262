# source: pfnet/pytorch-pfn-extras PR#726, meta-pytorch/torchrec PR#1742
# mechanism: the current device belongs to a thread; the one that prefetches batches still has the first GPU
# phase: forward; aten::linear
# expect: raises
# needs: 2 GPUs
import concurrent.futures

import torch


class Prefetcher:
    def __init__(self, batches):
        self.batches = iter(batches)
        self.pool = concurrent.futures.ThreadPoolExecutor(1)  # ALSO
        self.ready = self.pool.submit(self.fetch)

    def fetch(self):
        batch = next(self.batches, None)
        return None if batch is None else [part.cuda() for part in batch]  # ROOT

    def __iter__(self):
        while (batch := self.ready.result()) is not None:
            self.ready = self.pool.submit(self.fetch)
            yield batch
        self.pool.shutdown()


def train(local_rank):
    torch.cuda.set_device(local_rank)
    model = torch.nn.Linear(4, 3).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(6, 4), torch.randint(0, 3, (6,))) for _ in range(3)]
    for x, y in Prefetcher(batches):
        loss = torch.nn.functional.cross_entropy(model(x), y)  # RAISE
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train(local_rank=1)
