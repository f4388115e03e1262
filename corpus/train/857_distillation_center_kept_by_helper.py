# source: lightly-ai/lightly#1630, fix PR#1629 (DINOLoss.to(device) did not move the tensor of its Center helper)
# mechanism: [EMA / shadow copy] running mean of the teacher's outputs is a buffer of the loss; a helper that updates it was handed the tensor before the loss moved, .to() gives the loss another tensor
# phase: loss; failing op: aten::sub (cuda teacher output, cpu average)
# expect: raises
import torch
import torch.nn as nn
import torch.nn.functional as F

dev = torch.device("cuda", 0)


class Center:
    def __init__(self, value, momentum):
        self.value, self.momentum = value, momentum

    @torch.no_grad()
    def update(self, out):
        mean = out.mean(dim=0, keepdim=True)
        self.value.lerp_(mean, 1 - self.momentum)

class DistillLoss(nn.Module):
    def __init__(self, dim, momentum=0.9):
        super().__init__()
        self.register_buffer("center", torch.zeros(1, dim))
        self._center = Center(self.center, momentum)  # ROOT

    def forward(self, student, teacher):
        target = ((teacher - self._center.value) / 0.04).softmax(-1)  # RAISE
        loss = -(target * F.log_softmax(student / 0.1, dim=-1)).sum(-1).mean()
        self._center.update(teacher)
        return loss

student, teacher = nn.Linear(6, 4).to(dev), nn.Linear(6, 4).to(dev).requires_grad_(False)
criterion = DistillLoss(4).to(dev)
views = torch.randn(5, 6, device=dev)
criterion(student(views), teacher(views)).backward()
