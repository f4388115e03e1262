# source: graphnet-team/graphnet#328
# mechanism: [factory call without device=] loss translates the particle codes of the target through a Python dict and builds a new tensor from the list
# phase: loss; failing op: aten::mul inside cross_entropy with class probabilities
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class ParticleLoss(nn.Module):
    codes = {1: 0, 12: 2, 13: 1, 14: 2, 16: 2}

    def forward(self, pred, target):
        hot = F.one_hot(torch.tensor([self.codes[abs(c)] for c in target.tolist()]), 3)  # ROOT
        return F.cross_entropy(pred.float(), hot.float())  # RAISE  # ALSO

class Task(nn.Module):
    def __init__(self, hidden, loss):
        super().__init__()
        self.affine, self.loss = nn.Linear(hidden, 3), loss

    def forward(self, latent, batch):
        return self.loss(self.affine(latent), batch["pid"])

batch = {"pid": torch.tensor([13, -12, 1, 16], device=dev)}
Task(4, ParticleLoss()).to(dev)(torch.randn(4, 4, device=dev), batch)
