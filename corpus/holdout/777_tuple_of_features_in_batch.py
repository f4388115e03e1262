# source: catalyst-team/catalyst PR#214
# mechanism: [data not moved] batch mover handles a dict of tensors, but not a tuple of tensors inside the dict, which it passes on as it is
# phase: forward; failing op: aten::linear / addmm
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Runner:
    def __init__(self, model, device):
        self.model, self.device = model.to(device), device

    def to_device(self, batch):
        return {k: v.to(self.device) if torch.is_tensor(v) else v for k, v in batch.items()}  # ROOT

    def run(self, loader):
        for batch in map(self.to_device, loader):
            F.cross_entropy(self.model(batch["features"]), batch["targets"]).backward()

class TwoTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.left, self.right = nn.Linear(4, 3), nn.Linear(2, 3)

    def forward(self, features):
        a, b = features
        return self.left(a) + self.right(b)  # RAISE

loader = [{"features": (torch.randn(2, 4), torch.randn(2, 2)), "targets": torch.tensor([0, 2])}]
Runner(TwoTower(), dev).run(loader)
