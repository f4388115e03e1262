# source: https://github.com/pytorch/pytorch/issues/120996
# expect: silent
# kinds: implicit-sync
# `alpha=` is a Python number to PyTorch, so the trust ratio comes to the host for each parameter.
import torch

device = torch.device("cuda", 0)
parameters = [torch.randn(4, 4, device=device) for _ in range(2)]
for parameter in parameters:
    update = torch.randn_like(parameter)
    ratio = parameter.norm() / update.norm()  # ROOT
    parameter.add_(update, alpha=-ratio)  # RAISE
