# source: https://github.com/facebookresearch/fairchem/pull/813
# mechanism: a checkpoint is read to the place that a variable names, which is the host; what is no module stays there
# phase: first step after resuming; failing op: aten::sub.Tensor
# expect: raises
import io

import torch
from torch import nn


class Scaler:
    def __init__(self, mean, spread):
        self.mean, self.spread = mean, spread

    def norm(self, values):
        return (values - self.mean) / self.spread  # RAISE


class Trainer:
    def __init__(self, device):
        self.device = device
        self.model = nn.Linear(3, 2).to(device)
        self.scaler = Scaler(torch.zeros(2, device=device), torch.ones(2, device=device))

    def save(self, file):
        torch.save({"model": self.model.state_dict(), "scaler": vars(self.scaler)}, file)

    def resume(self, file):
        location = torch.device("cpu")  # ROOT
        found = torch.load(file, map_location=location)  # ALSO
        self.model.load_state_dict(found["model"])
        self.scaler = Scaler(**found["scaler"])  # ALSO

    def loss(self, rows, targets):
        guess = self.model(rows.to(self.device))
        return (guess - self.scaler.norm(targets.to(self.device))).abs().mean()


trainer = Trainer("cuda")
file = io.BytesIO()
trainer.save(file)
file.seek(0)
trainer.resume(file)
trainer.loss(torch.randn(4, 3), torch.randn(4, 2)).backward()
