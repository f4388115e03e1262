# source: pytorch/executorch PR#19174
# mechanism: positions for an in-place cache update come from arange without a device
# phase: generation; aten::index_copy_
# expect: raises
import torch

dev = torch.device("cuda", 0)


class Cache:
    def __init__(self, length, width):
        self.keys = torch.zeros(length, width, device=dev)

    def update(self, keys, start):
        where = torch.arange(keys.shape[0]) + start  # ROOT
        self.keys.index_copy_(0, where, keys)  # RAISE  # ALSO
        return self.keys


Cache(8, 4).update(torch.randn(2, 4, device=dev), start=3)
