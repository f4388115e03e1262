# source: huggingface/transformers#39730 (SlidingWindowLayer with device_map='auto'), fix PR#39732
# mechanism: [model-parallel hook] every layer's key cache is allocated on the first GPU, layers run on two; the update joins old and new keys
# phase: generation; failing op: aten::cat (cuda:0 vs cuda:1)
# expect: raises
# needs: 2 GPUs
# root: generate initializes all cache layers on one device (PR#39732 moves keys to key_states.device in update)
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


d1 = torch.device('cuda', 1)
class SlidingLayer:
    def __init__(self, window, device):
        self.keys = torch.zeros(1, window, 3, device=device)

    def update(self, k):
        self.keys = torch.cat([self.keys[:, 1:], k], dim=1)  # RAISE  # ALSO

layers = [nn.Linear(3, 3).to(d) for d in (dev, d1)]
cache = [SlidingLayer(4, dev) for _ in layers]  # ROOT
for layer, c in zip(layers, cache):
    c.update(layer(torch.ones(1, 1, 3).to(layer.weight.device)))
