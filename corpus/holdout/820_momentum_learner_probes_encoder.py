# source: lucidrains/byol-pytorch PR#30 (fixed in the commit that follows: get_module_device, self.to(device), mock image on device)
# mechanism: [EMA / shadow copy] wrapper creates its projector and its momentum (target) copy lazily, by sending a mock image through itself in __init__; the network it is given is already on CUDA
# phase: construction; failing op: aten::conv2d ('Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same')
# expect: raises
import copy
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Online(nn.Module):
    def __init__(self, net, size):
        super().__init__()
        self.net, self.size, self.projector = net, size, None

    def forward(self, x):
        h = self.net(x).flatten(1)  # RAISE
        if self.projector is None:
            self.projector = nn.Linear(h.shape[1], self.size).to(h)
        return self.projector(h)

class Learner(nn.Module):
    def __init__(self, net, image_size, size=4, decay=0.99):
        super().__init__()
        self.online, self.target, self.decay = Online(net, size), None, decay
        self.predictor = nn.Linear(size, size)
        self.forward(torch.randn(2, 3, image_size, image_size))  # ROOT

    def forward(self, x):
        if self.target is None:
            self.online(x)
            self.target = copy.deepcopy(self.online)
        with torch.no_grad():
            z = self.target(x)
        return 2 - 2 * F.cosine_similarity(self.predictor(self.online(x)), z).mean()

    def update_moving_average(self):
        for t, o in zip(self.target.parameters(), self.online.parameters()):
            t.data.lerp_(o.data, 1 - self.decay)

net = nn.Sequential(nn.Conv2d(3, 2, 3), nn.ReLU()).to(dev)
learner = Learner(net, image_size=6).to(dev)
learner(torch.randn(2, 3, 6, 6, device=dev)).backward()
