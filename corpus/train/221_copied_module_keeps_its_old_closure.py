# source: pytorch/pytorch#8637
# mechanism: a callable in an attribute closes over the module that made it; a copy on another GPU calls the old layer
# phase: forward; aten::linear
# expect: raises
# needs: 2 GPUs
import copy

import torch

devices = [torch.device("cuda", 0), torch.device("cuda", 1)]


class GatedBlock(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.value = torch.nn.Linear(width, width)
        self.strength = torch.nn.Linear(width, 1)

        def gate(hidden):
            return torch.sigmoid(self.strength(hidden))  # RAISE

        self.gate = gate  # ROOT

    def forward(self, x):
        hidden = self.value(x).relu()
        return x + hidden * self.gate(hidden)


def replicate(module):
    module.to(devices[0])
    return [module] + [copy.deepcopy(module).to(device) for device in devices[1:]]


def run_in_parts(replicas, batch):
    parts = batch.chunk(len(replicas))
    outputs = [replica(part.to(device)) for replica, part, device in zip(replicas, parts, devices)]
    return torch.cat([output.to(devices[0]) for output in outputs])


replicas = replicate(torch.nn.Sequential(GatedBlock(4), torch.nn.Linear(4, 2)))
run_in_parts(replicas, torch.randn(6, 4))
