# source: Lightning-AI/torchmetrics#943
# mechanism: compute() takes the detections to the CPU, where it is faster, and goes on with thresholds left on the GPU
# phase: metrics; aten::ge
# expect: raises
import torch

dev = torch.device("cuda", 0)


class AveragePrecision(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("thresholds", torch.linspace(0.5, 0.95, 10))  # ALSO
        self.overlaps, self.scores = [], []

    def update(self, overlaps, scores):
        self.overlaps.append(overlaps)
        self.scores.append(scores)

    def compute(self):
        overlaps = torch.cat([overlap.cpu() for overlap in self.overlaps])  # ROOT
        scores = torch.cat([score.cpu() for score in self.scores])
        order = scores.argsort(descending=True)
        hits = overlaps[order][:, None] >= self.thresholds  # RAISE  # ALSO
        precision = hits.cumsum(0) / torch.arange(1, len(order) + 1)[:, None]
        return precision.mean()


class Detector(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(4, 2)
        self.metric = AveragePrecision()

    def validate(self, features):
        overlap, score = self.head(features).sigmoid().unbind(-1)
        self.metric.update(overlap, score)


detector = Detector().to(dev)
with torch.no_grad():
    for _ in range(3):
        detector.validate(torch.randn(5, 4, device=dev))
    result = detector.metric.compute()
