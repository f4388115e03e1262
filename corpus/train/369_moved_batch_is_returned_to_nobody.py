# source: sunlabuiuc/PyHealth#173, Lightning-AI/pytorch-lightning#2350
# mechanism: a helper returns a dict of moved tensors; the loop calls it as if it moved them in place
# phase: forward; aten::embedding
# expect: raises
import torch
from torch import nn


class Trainer:
    def __init__(self, model, device):
        self.device = device
        self.model = model.to(device)

    def to_device(self, batch):
        return {name: value.to(self.device) for name, value in batch.items()}

    def step(self, batch):
        self.to_device(batch)  # ROOT
        return self.loss(**batch)  # ALSO

    def loss(self, codes, labels):
        pooled = self.model[0](codes).mean(1)  # RAISE
        return nn.functional.cross_entropy(self.model[1](pooled), labels)


net = nn.Sequential(nn.Embedding(12, 4), nn.Linear(4, 2))
Trainer(net, "cuda").step({"codes": torch.randint(0, 12, (3, 5)), "labels": torch.tensor([0, 1, 1])})
