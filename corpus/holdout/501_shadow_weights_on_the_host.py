# source: https://github.com/huggingface/pytorch-image-models/issues/2127
# mechanism: the averaged copy is put on the host by an argument of its constructor, and its update takes weights of the GPU as they are
# phase: after the optimizer's step; failing op: aten::lerp_.Scalar
# expect: raises
import copy

import torch
from torch import nn


class Shadow(nn.Module):
    def __init__(self, model, decay=0.99, device=None):
        super().__init__()
        self.module = copy.deepcopy(model).eval().requires_grad_(False)
        self.decay = decay
        if device is not None:
            self.module.to(device=device)

    @torch.no_grad()
    def update(self, model):
        kept = self.module.state_dict()
        for name, value in model.state_dict().items():  # ALSO
            if kept[name].is_floating_point():
                kept[name].lerp_(value, 1 - self.decay)  # ROOT # RAISE
            else:
                kept[name].copy_(value)


model = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 1)).to("cuda")
shadow = Shadow(model, decay=0.9, device="cpu")
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad()
    model(torch.randn(8, 4, device="cuda")).square().mean().backward()
    optimizer.step()
    shadow.update(model)
