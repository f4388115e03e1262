# source: huggingface/transformers PR#20304 (also PR#20160 review, PR#21974, PR#27468)
# mechanism: [factory call without device=] image sizes given as a list of tuples become CPU tensors, their stack scales boxes on CUDA; sizes given as a tensor would work
# phase: evaluation (post-processing); failing op: aten::mul
# expect: raises
from types import SimpleNamespace

import torch
import torch.nn as nn


class TableDetector(nn.Module):
    def __init__(self, queries=5, classes=3):
        super().__init__()
        self.queries = nn.Parameter(torch.randn(queries, 8))
        self.label, self.corner = nn.Linear(8, classes + 1), nn.Linear(8, 4)

    def forward(self, pages):
        h = self.queries + pages.flatten(1)[:, None, :8]
        return SimpleNamespace(logits=self.label(h), boxes=self.corner(h).sigmoid())


class PageProcessor:
    def to_corners(self, b):
        cx, cy, w, h = b.unbind(-1)
        return torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], dim=-1)

    def post_process(self, outputs, threshold=0.0, sizes=None):
        scores, labels = outputs.logits.softmax(-1)[..., :-1].max(-1)
        boxes = self.to_corners(outputs.boxes)
        if sizes is not None:
            if isinstance(sizes, (list, tuple)):
                height = torch.tensor([float(s[0]) for s in sizes])
                width = torch.tensor([float(s[1]) for s in sizes])
            else:
                height, width = sizes.unbind(1)
            scale = torch.stack([width, height, width, height], dim=1)  # ROOT
            boxes = boxes * scale[:, None, :]  # RAISE  # ALSO
        keep = scores > threshold
        return [{"scores": s[k], "labels": l[k], "boxes": b[k]} for s, l, b, k in zip(scores, labels, boxes, keep)]


model = TableDetector().to("cuda:0").eval()
pages = torch.rand(2, 1, 4, 4)
with torch.no_grad():
    outputs = model(pages.to("cuda:0"))
print(PageProcessor().post_process(outputs, sizes=[(1100, 850), (1240, 900)]))
