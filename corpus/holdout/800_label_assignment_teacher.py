# source: open-mmlab/mmdetection PR#10078, PR#4758
# mechanism: [module list not registered] teacher is stored past nn.Module.__setattr__ so that its weights stay out of parameters(); cuda() was overridden to move it, .to() was not
# phase: training forward; failing op: aten::addmm
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Detector(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.neck, self.head = nn.Linear(6, width), nn.Linear(width, 3)

    def forward(self, x):
        return self.head(self.neck(x).relu())  # RAISE


class LabelAssignmentDistiller(Detector):
    def __init__(self):
        super().__init__(4)
        object.__setattr__(self, "teacher", Detector(8).eval())  # ROOT

    def cuda(self, device=None):
        self.teacher.cuda(device=device)
        return super().cuda(device=device)

    def train(self, mode=True):
        self.teacher.train(False)
        return super().train(mode)

    def loss(self, x):
        with torch.no_grad():
            assigned = self.teacher(x).argmax(-1)
        return nn.functional.cross_entropy(self(x), assigned)


model = LabelAssignmentDistiller().to(dev).train()
model.loss(torch.randn(5, 6, device=dev)).backward()
