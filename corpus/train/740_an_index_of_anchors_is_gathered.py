# source: WongKinYiu/PyTorch_YOLOv4#424; same code WongKinYiu/yolor#268 #282, WongKinYiu/yolov7#1502
# mechanism: [index tensor] anchor index table built with torch.arange and no device; a CUDA boolean mask from the wh ratios then indexes it
# phase: loss; failing op: aten::index ('indices should be either on cpu or on the same device as the indexed tensor (cpu)')
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Detect(nn.Module):
    def __init__(self, nc=2, anchors=((1.25, 1.6), (2.0, 3.75), (4.1, 2.9))):
        super().__init__()
        self.nc, self.na = nc, len(anchors)
        self.register_buffer("anchor_vec", torch.tensor(anchors))
        self.m = nn.Conv2d(8, self.na * (nc + 5), 1)

    def forward(self, x):
        bs, _, ny, nx = x.shape
        return self.m(x).view(bs, self.na, self.nc + 5, ny, nx).permute(0, 1, 3, 4, 2)


def build_targets(p, targets, model, anchor_t=4.0):
    na, nt = model.na, targets.shape[0]
    gain = torch.ones(6, device=targets.device)
    at = torch.arange(na).view(na, 1).repeat(1, nt)  # ROOT
    gain[2:] = torch.tensor(p.shape)[[3, 2, 3, 2]]
    a, t = [], targets * gain
    if nt:
        r = t[None, :, 4:6] / model.anchor_vec[:, None]
        j = torch.max(r, 1. / r).max(2)[0] < anchor_t
        a, t = at[j], t.repeat(na, 1, 1)[j]  # RAISE
    b, gxy = t[:, 0].long(), t[:, 2:4]
    return b, a, gxy.long()


model = Detect().to(dev)
pred = model(torch.randn(2, 8, 8, 8, device=dev))
targets = torch.tensor([[0, 1, .5, .5, .3, .3], [1, 0, .2, .6, .4, .3]])
build_targets(pred, targets.to(dev), model)
