# source: invoke-ai/InvokeAI PR#985 ('yet more .to(device) calls')
# mechanism: [factory call without device=] of two tensors built by factories in one noise function, the grid is moved, the random gradients are not
# phase: sampling setup; failing op: aten::mul
# expect: raises
# root: ldm/util.py:rand_perlin_2d: gradients = torch.stack((torch.cos(angles), torch.sin(angles)), dim=-1) without .to(device)
import math

import torch

dev = torch.device('cuda', 0)


def perlin(n, res, device):
    step = torch.arange(0, res, res / n) % 1
    grid = torch.stack(torch.meshgrid(step, step, indexing="ij"), dim=-1).to(device)
    angles = 2 * math.pi * torch.rand(res, res)  # ALSO
    grads = torch.stack([angles.cos(), angles.sin()], dim=-1)  # ROOT
    tile = grads.repeat_interleave(n // res, 0).repeat_interleave(n // res, 1)  # ALSO
    return (grid * tile).sum(-1)  # RAISE

latents = torch.randn(1, 4, 8, 8, device=dev)
latents = 0.9 * latents + 0.1 * perlin(8, 2, dev)
