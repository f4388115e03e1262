# source: NVIDIA-NeMo/Automodel PR#3461
# mechanism: [zero-dim scalar] gradients are CPU-offloaded and so is the norm accumulator; the collective moves the 0-dim accumulator to the mesh's CUDA device and does not bring it back (what the PR says simply allocating it on CUDA would do)
# phase: gradient clipping; failing op: aten::div (cpu 2-D / cuda 0-d)
# expect: raises
import torch
import torch.nn as nn

dev = torch.device("cuda", 0)


class Mesh:
    def __init__(self, device, world):
        self.device, self.world = device, world

    def all_reduce(self, value, op):
        parts = [value.to(self.device) for _ in range(self.world)]
        return op(torch.stack(parts))  # ROOT


def clip_grad_norm(params, max_norm, mesh):
    grads = [p.grad for p in params if p.grad is not None]
    peak = torch.zeros((), device=grads[0].device)
    for g in grads:
        peak = torch.maximum(peak, g.abs().max())
    peak = mesh.all_reduce(peak, torch.amax)
    total = 0.0
    for g in grads:
        total = total + ((g / peak) ** 2).sum()  # RAISE
    norm = peak * mesh.all_reduce(total, torch.sum).sqrt()
    for g in grads:
        g.mul_(torch.clamp(max_norm / (norm + 1e-6), max=1.0))
    return norm


net = nn.Linear(4, 2)
net.weight.grad, net.bias.grad = torch.full((2, 4), 3.0), torch.ones(2)
clip_grad_norm(net.parameters(), 1.0, Mesh(dev, 2))
