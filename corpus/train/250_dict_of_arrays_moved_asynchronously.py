# source: https://github.com/huggingface/accelerate/pull/2685
# expect: silent
# kinds: unpinned-async-copy
# A helper moves whatever is in a batch with non_blocking=True; the arrays behind it are NumPy's.
import numpy
import torch

device = torch.device("cuda", 0)


def collate(rows):
    return {name: torch.stack([torch.from_numpy(row[name]) for row in rows]) for name in rows[0]}  # ROOT


def move(batch):
    return {name: value.cuda(device, non_blocking=True) for name, value in batch.items()}  # RAISE


rows = [{"x": numpy.ones(3, dtype=numpy.float32), "y": numpy.zeros(1, dtype=numpy.float32)} for _ in range(4)]
batch = move(collate(rows))
