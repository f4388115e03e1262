# source: sacmehta/EdgeNets#25 ('I fixed the problem by adding model.cuda() before resume')
# mechanism: [optimizer state load] checkpoint restored while the model is still on the CPU; load_state_dict puts the moments where the parameters are, then the model moves
# phase: checkpoint load -> optimizer step; failing op: aten::lerp_
# expect: raises
# root: train_segmentation.py: --resume block before model.cuda()
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device('cuda', 0)


net = nn.Linear(3, 1)
opt = torch.optim.Adam(net.parameters(), foreach=False)
net(torch.ones(2, 3)).sum().backward()
opt.step()
checkpoint = opt.state_dict()
opt = torch.optim.Adam(net.parameters(), foreach=False)  # ALSO
opt.load_state_dict(checkpoint)  # ROOT
net.zero_grad()
net.to(dev)  # ALSO
net(torch.ones(2, 3, device=dev)).sum().backward()
opt.step()  # RAISE
