# source: huggingface/transformers PR#17014 (Replace dict/BatchEncoding instance checks by Mapping; #16983), same in fastai/fastai PR#3969
# mechanism: [data not moved] recursive mover knows dict and one subclass of UserDict; another UserDict falls through and is returned as it came
# phase: training step; failing op: aten::convolution
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F
from collections import UserDict

dev = torch.device("cuda", 0)


class TextEncoding(UserDict):
    pass

class ImageFeatures(UserDict):
    pass

class Trainer:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device

    def prepare(self, data):
        if isinstance(data, (dict, TextEncoding)):  # ROOT
            return type(data)({k: self.prepare(v) for k, v in data.items()})
        if isinstance(data, (list, tuple)):
            return type(data)(self.prepare(v) for v in data)
        return data.to(self.device) if isinstance(data, torch.Tensor) else data

    def step(self, batch):
        batch = self.prepare(batch)
        logits = self.model(batch["pixels"])  # RAISE
        return F.cross_entropy(logits, batch["labels"])

def collate(rows):
    return ImageFeatures(pixels=torch.stack([r[0] for r in rows]), labels=torch.tensor([r[1] for r in rows]))

net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.Flatten(), nn.Linear(8, 3))
Trainer(net, dev).step(collate([(torch.rand(3, 4, 4), i) for i in range(3)]))
