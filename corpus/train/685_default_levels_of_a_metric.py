# source: pytorch/ignite PR#3540 (ObjectDetectionAvgPrecisionRecall: default iou thresholds are not put on the metric's device)
# mechanism: [factory call without device=] a metric has a device argument and uses it for its sums, but the default overlap levels are built without it
# phase: evaluation; failing op: aten::ge
# expect: raises
import torch


def overlap(a, b):
    lo = torch.maximum(a[:, None, :2], b[None, :, :2])
    hi = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (hi - lo).clamp(min=0).prod(dim=-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(dim=-1)
    return inter / (area(a)[:, None] + area(b)[None, :] - inter)


class RecallByOverlap:
    def __init__(self, levels=None, device="cpu"):
        self.device = torch.device(device)
        if levels is None:
            levels = torch.linspace(0.5, 0.95, 10)  # ROOT
        self.levels = levels  # ALSO
        self.reset()

    def reset(self):
        self.found = torch.zeros(len(self.levels), device=self.device)
        self.wanted = 0

    def update(self, frames):
        for guess, truth in frames:
            best = overlap(truth, guess).amax(dim=1)
            hit = best.unsqueeze(0) >= self.levels.unsqueeze(1)  # RAISE  # ALSO
            self.found += hit.sum(dim=1)
            self.wanted += len(truth)

    def compute(self):
        return self.found / max(self.wanted, 1)


gpu = "cuda:0"
metric = RecallByOverlap(device=gpu)
truth = torch.tensor([[0.0, 0.0, 8.0, 8.0], [4.0, 4.0, 12.0, 16.0]], device=gpu)
frames = [(truth + torch.randn_like(truth) * 0.3, truth) for _ in range(3)]
metric.update(frames)
print(metric.compute().mean())
