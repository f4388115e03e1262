# source: toandaominh1997/EfficientDet.Pytorch#8, #9
# mechanism: [module never moved] layer is constructed inside forward because the input channels are only known there; it never belongs to the model that was moved
# phase: forward; failing op: aten::conv2d ('Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same')
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Neck(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.smooth = nn.Conv2d(width, width, 3, padding=1)

    def lateral(self, f):
        return nn.Conv2d(f.shape[1], self.width, 1)  # ROOT

    def forward(self, feats):
        top = None
        for f in reversed(feats):
            p = self.lateral(f)(f)  # RAISE  # ALSO
            top = p if top is None else p + F.interpolate(top, scale_factor=2)
        return self.smooth(top)

backbone = nn.ModuleList([nn.Conv2d(3, 4, 3, 2, 1), nn.Conv2d(4, 6, 3, 2, 1)]).to(dev)
c1 = backbone[0](torch.randn(1, 3, 16, 16, device=dev))
Neck(5).to(dev)([c1, backbone[1](c1)])
