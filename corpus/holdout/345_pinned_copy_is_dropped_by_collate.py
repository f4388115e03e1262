# source: https://discuss.pytorch.org/t/pin-memory-vs-sending-direct-to-gpu-from-dataset/33891
# mechanism: pin_memory() returns a pinned copy, and collate keeps the original
# phase: data; aten::to
# expect: silent
# kinds: unpinned-async-copy
import torch

dev = torch.device("cuda", 0)


class Batch:
    def __init__(self, rows):
        self.features = torch.stack([features for features, _ in rows])
        self.labels = torch.tensor([label for _, label in rows])

    def pin_memory(self):
        self.features.pin_memory()  # ROOT
        self.labels = self.labels.pin_memory()
        return self

    def to(self, device):
        features = self.features.to(device, non_blocking=True)  # RAISE
        return features, self.labels.to(device, non_blocking=True)


def batches(rows, size):
    for begin in range(0, len(rows), size):
        yield Batch(rows[begin:begin + size]).pin_memory()


model = torch.nn.Linear(4, 2).to(dev)
rows = [(torch.randn(4), k % 2) for k in range(12)]
for batch in batches(rows, 4):
    features, labels = batch.to(dev)
    torch.nn.functional.cross_entropy(model(features), labels).backward()
