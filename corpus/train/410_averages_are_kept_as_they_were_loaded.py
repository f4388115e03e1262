# source: huggingface/pytorch-image-models#1075
# mechanism: a checkpoint is read to the host, as it should be; the averages keep their part of it as it came
# phase: forward; aten::lerp_.Scalar
# expect: raises
import os
import tempfile

import torch
from torch import nn


class Averages:
    def __init__(self, model):
        self.shadow = {name: value.detach().clone() for name, value in model.state_dict().items()}

    @torch.no_grad()
    def update(self, model):
        for name, value in model.state_dict().items():
            self.shadow[name].lerp_(value, 0.1)  # RAISE

    def restore(self, state):
        self.shadow = {name: value.clone() for name, value in state.items()}  # ROOT


def run(path, steps):
    model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 1)).to("cuda")
    averages = Averages(model)
    if os.path.exists(path):
        saved = torch.load(path, map_location="cpu")
        model.load_state_dict(saved["model"])
        averages.restore(saved["averages"])  # ALSO
    for _ in range(steps):
        averages.update(model)
    torch.save({"model": model.state_dict(), "averages": averages.shadow}, path)


with tempfile.TemporaryDirectory() as directory:
    run(os.path.join(directory, "last.pt"), 1)
    run(os.path.join(directory, "last.pt"), 1)
