# source: huggingface/transformers#21102
# mechanism: a cached property asks the model for its device once, in a dry run before the model is moved
# phase: forward; aten::embedding
# expect: raises
import functools

import torch
from torch import nn


class Generator:
    def __init__(self, model):
        self.model = model

    @functools.cached_property  # ROOT
    def device(self):
        return next(self.model.parameters()).device

    def run(self, length):
        ids = torch.zeros(1, 1, dtype=torch.long, device=self.device)
        for _ in range(length):
            scores = self.model(ids)  # RAISE
            ids = torch.cat([ids, scores[:, -1].argmax(-1, keepdim=True)], 1)
        return ids


model = nn.Sequential(nn.Embedding(7, 4), nn.Linear(4, 7))
generator = Generator(model)
generator.run(1)
model.to("cuda")  # ALSO
generator.run(3)
