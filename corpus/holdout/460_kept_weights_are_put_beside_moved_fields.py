# source: none; a sampler that moves each field by a helper, and takes its weights as they are
# mechanism: what comes from elsewhere is put beside moved fields without a move: the line that puts it there
# phase: loss
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class Store:
    def __init__(self, size):
        self.inputs = torch.rand(size, 3)
        self.wanted = torch.rand(size)
        self.weight = torch.rand(size)

    def draw(self, rows):
        move = lambda tensor: tensor[rows].to(dev)
        weight = self.weight[rows]  # ALSO
        return {"inputs": move(self.inputs), "wanted": move(self.wanted), "weight": weight}  # ROOT


model = nn.Linear(3, 1).to(dev)
batch = Store(20).draw(torch.arange(5))
error = model(batch["inputs"]).squeeze(1) - batch["wanted"]
loss = (error.pow(2) * batch["weight"]).mean()  # RAISE
loss.backward()
