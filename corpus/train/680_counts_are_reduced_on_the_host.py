# source: Lightning-AI/torchmetrics#2477, Lightning-AI/pytorch-lightning#18803, facebookresearch/flowmm#17
# mechanism: a metric counts in Python, makes a tensor of its counts without a device, and gives it to a process group that has a backend for GPUs alone
# phase: evaluation; c10d::allreduce_
# expect: raises
import torch
import torch.distributed as dist
from torch import nn


class Accuracy:
    def __init__(self):
        self.right, self.seen = 0, 0

    def update(self, scores, labels):
        self.right += int((scores.argmax(1) == labels).sum())
        self.seen += len(labels)

    def compute(self):
        counts = torch.tensor([self.right, self.seen], dtype=torch.float64)  # ROOT
        dist.all_reduce(counts)  # RAISE
        return (counts[0] / counts[1]).item()


dist.init_process_group("cuda:gloo", store=dist.HashStore(), rank=0, world_size=1)  # ALSO
model = nn.Linear(6, 3).to("cuda")
accuracy = Accuracy()
for _ in range(2):
    batch = torch.randn(5, 6, device="cuda")
    accuracy.update(model(batch), torch.randint(3, (5,), device="cuda"))
print(accuracy.compute())
