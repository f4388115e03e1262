# source: Project-MONAI/MONAI#6361, PR#6368
# mechanism: [expert placement] each member of the ensemble runs where it fits (one falls back to the CPU) and its prediction stays there; the mean stacks them
# phase: inference; failing op: aten::stack/cat
# expect: raises
# root: auto3dseg/ensemble_builder.py: predictions collected as they come (fix: bring all to one device before the ensemble)
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


def mean_ensemble(preds):
    return torch.stack(preds).mean(0)  # RAISE  # ALSO

members = [(nn.Conv2d(1, 2, 3), dev), (nn.Conv2d(1, 2, 3), torch.device('cpu'))]
image = torch.randn(1, 1, 8, 8)
preds = []
for net, where in members:
    net.to(where)
    preds.append(net(image.to(where)).softmax(1))  # ROOT
mask = mean_ensemble(preds).argmax(1)  # ALSO
