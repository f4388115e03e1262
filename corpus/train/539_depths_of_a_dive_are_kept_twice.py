# source: metadata of attention kernels, with lengths for the device and for the host
# mechanism: a named tuple has depths for the device and for the host, and the second are given the same copy's device
# phase: planning; failing op: aten::gt
# expect: raises
import collections

import torch
from torch import nn

dev = torch.device("cuda", 0)
Dive = collections.namedtuple("Dive", ["depths", "depths_cpu", "divers"])


def prepared(depths, where):
    return Dive(
        depths.to(where),
        divers=len(depths),
        depths_cpu=depths.to(where),  # ROOT
    )


def stops(dive):
    limits = torch.tensor([10.0, 30.0])
    return (dive.depths_cpu[:, None] > limits).sum(1).tolist()  # RAISE


class Pressure(nn.Linear):
    def forward(self, dive):
        return super().forward(dive.depths[:, None]), stops(dive)


Pressure(1, 1).to(dev)(prepared(torch.tensor([12.0, 40.0]), dev))
