# source: meta-pytorch/captum PR#1189 ('move pred to cpu, which is the same device as lm.classes()')
# mechanism: [index tensor] fitted linear model lives on CUDA and keeps its class values on the CPU; the argmax of its output indexes them
# phase: evaluation; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
# root: _core/_tcav: pred = lm(x).argmax(dim=1) without .cpu()
import torch
import torch.nn as nn

dev = torch.device('cuda', 0)


y = torch.tensor([2, 5, 5, 2])
classes = y.unique()  # ALSO
lm = nn.Linear(3, len(classes)).to(dev)
for xb, yb in zip(torch.randn(2, 2, 3), y.view(2, 2)):
    pred = lm(xb.to(dev)).argmax(dim=1)  # ROOT
    acc = (classes[pred].cpu() == yb).float().mean()  # RAISE  # ALSO
