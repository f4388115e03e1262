# source: pytorch/pytorch#8623 (later #38605, PR#38615)
# mechanism: [zero-dim scalar] norms of gradients that live on two GPUs are added up as 0-dim CUDA tensors; a 0-dim tensor of one GPU is no number for the other
# phase: gradient clipping; failing op: aten::add (cuda:0 0-d + cuda:1 0-d)
# expect: raises
# needs: 2 GPUs
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)
d1 = torch.device("cuda", 1)


class SplitModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.large_a = nn.Linear(6, 4).to(dev)
        self.large_b = nn.Linear(4, 1).to(d1)

    def forward(self, x):
        return self.large_b(self.large_a(x).relu().to(d1))


def clip_gradients(parameters, max_norm):
    parameters = [p for p in parameters if p.grad is not None]
    total_norm = 0.0
    for p in parameters:
        total_norm = total_norm + p.grad.norm() ** 2  # ROOT  # RAISE
    clip_coef = (max_norm / (total_norm.sqrt() + 1e-6)).clamp(max=1.0)
    for p in parameters:
        p.grad.mul_(clip_coef.to(p.grad.device))
    return total_norm.sqrt()


model = SplitModel()
model(torch.randn(8, 6, device=dev)).pow(2).mean().backward()
clip_gradients(model.parameters(), 1.0)
