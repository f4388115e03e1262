# source: pytorch forum, data prefetcher with soft targets
# mechanism: a generator moves a batch ahead of its use, and hands the third part on as it came
# phase: forward; aten::mul.Tensor
# expect: raises
import torch
import torch.nn.functional as F
from torch import nn


def batches(teacher, count):
    for _ in range(count):
        x = torch.rand(6, 4)
        with torch.no_grad():
            yield x, torch.randint(3, (6,)), teacher(x)


def prefetch(source, device):
    ahead = None
    for x, y, soft in source:
        current = (x.to(device), y.to(device), soft)  # ROOT
        if ahead is not None:
            yield ahead
        ahead = current
    yield ahead


def loss_of(scores, labels, soft):
    target = soft.softmax(-1)  # ALSO
    return F.cross_entropy(scores, labels) - (target * scores.log_softmax(-1)).sum(-1).mean()  # RAISE


def layers(hidden):
    return nn.Sequential(nn.Linear(4, hidden), nn.ReLU(), nn.Linear(hidden, 3))


teacher, student = layers(32), layers(8).to("cuda")
for inputs, labels, soft in prefetch(batches(teacher, 3), "cuda"):
    loss_of(student(inputs), labels, soft).backward()
