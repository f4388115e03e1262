# source: jacobgil/pytorch-grad-cam PR#588
# mechanism: [hard-coded device] the target moves its reference boxes to CUDA whenever CUDA is there, although the detector was put on the CPU
# phase: forward (explanation of a detection); failing op: aten::maximum
# expect: raises
import numpy as np
import torch
import torch.nn as nn


def overlap(a, b):
    top_left = torch.maximum(a[:, None, :2], b[None, :, :2])  # RAISE
    bottom_right = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inner = (bottom_right - top_left).clamp(min=0).prod(-1)
    area_a, area_b = [(t[:, 2:] - t[:, :2]).prod(-1) for t in (a, b)]
    return inner / (area_a[:, None] + area_b[None, :] - inner + 1e-6)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 4, 3, padding=1)
        self.box, self.score = nn.Linear(4, 8), nn.Linear(4, 2)

    def forward(self, x):
        h = self.body(x).mean((2, 3))
        corners = self.box(h).view(2, 2, 2).abs().cumsum(1)
        return {"boxes": corners.flatten(1), "scores": self.score(h)[0].sigmoid()}


class BoxTarget:
    def __init__(self, boxes, least=0.1):
        self.boxes, self.least = boxes, least

    def __call__(self, outputs):
        total = 0.0
        for box in self.boxes:
            box = torch.from_numpy(box[None])
            if torch.cuda.is_available():  # ALSO
                box = box.cuda()  # ROOT
            ious = overlap(box, outputs["boxes"])[0]
            best = ious.argmax()
            if ious[best] > self.least:
                total = total + ious[best] + outputs["scores"][best]
        return total


detector = Detector().to("cpu")
image = torch.rand(1, 1, 8, 8, requires_grad=True)
target = BoxTarget(np.array([[0.0, 0.0, 1.0, 1.0]], dtype=np.float32))
value = target(detector(image))
print(value)
