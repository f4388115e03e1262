# source: pytorch/vision PR#1312 (rpn.py: anchors made by a first forward on the CPU are kept after the model has moved)
# mechanism: [stale cache] templates are made lazily by the first forward, a dry run on the CPU; the cache asks only whether they exist, not where they are
# phase: forward; failing op: aten::add
# expect: raises
import torch
import torch.nn as nn


class LesionPriors(nn.Module):
    def __init__(self, sizes, aspects, strides):
        super().__init__()
        self.sizes, self.aspects, self.strides = sizes, aspects, strides
        self.templates = None

    def prepare(self, device):
        if self.templates is not None:  # ROOT
            return
        root = torch.tensor(self.aspects, device=device).sqrt()
        self.templates = []
        for size in self.sizes:
            half_w, half_h = size / root / 2, size * root / 2
            self.templates.append(torch.stack([-half_w, -half_h, half_w, half_h], dim=1))

    def forward(self, levels):
        self.prepare(levels[0].device)
        priors = []
        for fmap, stride, base in zip(levels, self.strides, self.templates):
            rows = torch.arange(fmap.shape[-2], device=fmap.device) * stride
            cols = torch.arange(fmap.shape[-1], device=fmap.device) * stride
            cy, cx = torch.meshgrid(rows, cols, indexing="ij")
            centres = torch.stack([cx, cy, cx, cy], dim=-1).reshape(-1, 1, 4)
            priors.append((centres + base).reshape(-1, 4))  # RAISE  # ALSO
        return torch.cat(priors)


class SliceDetector(nn.Module):
    def __init__(self):
        super().__init__()
        self.fine, self.coarse = nn.Conv2d(1, 8, 3, 4, 1), nn.Conv2d(8, 8, 3, 2, 1)
        self.priors = LesionPriors([12.0, 24.0], [0.5, 1.0, 2.0], [4, 8])
        self.head = nn.Conv2d(8, 3, 1)

    def forward(self, ct):
        p1 = self.fine(ct).relu()
        p2 = self.coarse(p1).relu()
        return self.priors([p1, p2]), [self.head(p) for p in (p1, p2)]


net = SliceDetector()
boxes, _ = net(torch.zeros(1, 1, 32, 32))
print("priors per slice:", len(boxes))
net.to("cuda:0")
boxes, scores = net(torch.randn(2, 1, 32, 32, device="cuda:0"))
