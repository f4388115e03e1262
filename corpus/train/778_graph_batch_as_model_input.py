# source: microsoft/mattersim#113, fix PR#147
# mechanism: [data not moved] conversion of a graph batch to the model's input takes a device argument and never uses it
# phase: forward; failing op: aten::embedding (argument index)
# expect: raises
import torch
import torch.nn as nn
from types import SimpleNamespace

dev = torch.device("cuda", 0)


def batch_to_dict(batch, device="cuda"):
    inputs = {key: getattr(batch, key) for key in ("z", "pos", "owner")}  # ROOT
    inputs["num_graphs"] = batch.num_graphs
    return inputs

class Potential(nn.Module):
    def __init__(self):
        super().__init__()
        self.species, self.readout = nn.Embedding(10, 4), nn.Linear(7, 1)

    def forward(self, inp):
        h = self.species(inp["z"])  # RAISE
        e = self.readout(torch.cat([h, inp["pos"]], -1)).squeeze(-1)
        return e.new_zeros(inp["num_graphs"]).index_add(0, inp["owner"], e)

potential = Potential().to(dev)
batch = SimpleNamespace(z=torch.tensor([1, 8, 1, 6, 8]), pos=torch.randn(5, 3), owner=torch.tensor([0, 0, 0, 1, 1]), num_graphs=2)
potential(batch_to_dict(batch, device=dev))
