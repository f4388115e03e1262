# source: pytorch/pytorch#122757, sacdallago/biotrainer#67
# mechanism: class weights given to a loss that is never moved; the loss looks innocent where it is called
# phase: loss; aten::nll_loss_nd
# expect: raises
import torch

dev = torch.device("cuda", 0)

criterion = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]))  # ROOT
net = torch.nn.Linear(4, 3).to(dev)
labels = torch.tensor([0, 2], device=dev)
loss = criterion(net(torch.randn(2, 4, device=dev)), labels)  # RAISE
