# source: official-stockfish/nnue-pytorch PR#456 (review: current_device() is thread-local, use the device resolved on the consumer thread)
# mechanism: [async copy race] batches are copied with non_blocking on a background thread, which asks again for the current device; a new thread starts on cuda:0 whatever the main thread has set
# phase: data loading -> forward; failing op: aten::linear / addmm (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
import queue
import threading
import torch

torch.cuda.set_device(1)
dev = torch.device("cuda", 1)


class Prefetcher:
    def __init__(self, batches, device):
        self.batches, self.device = batches, device
        self.prefetch_device = self.resolve()  # ALSO
        self.ready = queue.Queue(2)
        threading.Thread(target=self.worker, daemon=True).start()

    def resolve(self):
        if self.device.type == "cuda" and self.device.index is None:
            return torch.device("cuda", torch.cuda.current_device())
        return self.device

    def worker(self):
        device = self.resolve()  # ROOT
        for x, y in self.batches:
            self.ready.put((x.to(device, non_blocking=True), y.to(device, non_blocking=True)))  # ALSO
        self.ready.put(None)

    def __iter__(self):
        while (batch := self.ready.get()) is not None:
            yield batch

net = torch.nn.Linear(4, 1).to(dev)
for x, y in Prefetcher([(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)], torch.device("cuda")):  # ALSO
    loss = (net(x) - y).pow(2).mean()  # RAISE
