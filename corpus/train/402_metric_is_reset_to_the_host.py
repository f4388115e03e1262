# source: Lightning-AI/torchmetrics#531
# mechanism: reset() replaces a buffer by one that is made without a device, after the metric was moved
# phase: forward; aten::add_.Tensor
# expect: raises
import torch
from torch import nn


class Confusion(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.register_buffer("counts", torch.zeros(classes * classes, dtype=torch.long))

    def update(self, predicted, labels):
        pairs = labels * self.classes + predicted
        self.counts += torch.bincount(pairs, minlength=self.classes**2)  # RAISE

    def reset(self):
        self.counts = torch.zeros(self.classes * self.classes, dtype=torch.long)  # ROOT


metric = Confusion(3).to("cuda")
for epoch in range(2):
    for _ in range(2):
        metric.update(torch.randint(3, (8,), device="cuda"), torch.randint(3, (8,), device="cuda"))
    print(metric.counts.sum().item())
    metric.reset()
