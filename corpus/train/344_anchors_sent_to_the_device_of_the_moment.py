# source: https://github.com/Lightning-AI/pytorch-lightning/issues/4172
# mechanism: a constructor sends what it makes to its own device, which is the CPU until the trainer moves the module
# phase: loss; aten::sub
# expect: raises
import torch
from torch import nn

dev = torch.device("cuda", 0)


class AnchorLoss:
    def __init__(self, anchors):
        self.anchors = anchors

    def __call__(self, found):
        return (found - self.anchors).square().mean()  # RAISE  # ALSO


def make_anchors(count):
    steps = (torch.arange(count) + 0.5) / count
    return torch.stack([steps, steps.flip(0)], dim=-1)


class Detector(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.head = nn.Linear(5, 2 * count)
        anchors = make_anchors(count)
        self.loss = AnchorLoss(anchors.to(self.device))  # ROOT

    @property
    def device(self):
        return self.head.weight.device

    def training_step(self, x):
        return self.loss(self.head(x).view(-1, 2).unflatten(0, (len(x), -1)))


def fit(module, batches):
    module.to(dev)
    for x in batches:
        module.training_step(x.to(dev)).backward()


fit(Detector(3), [torch.randn(4, 5) for _ in range(2)])
