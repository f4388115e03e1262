# source: https://github.com/pytorch/pytorch/issues/137878
# expect: clean
# Blocking copies in both directions, pageable and pinned, and buffers that are used again after a wait.
import torch

device = torch.device("cuda", 0)
staging = torch.empty(4, 8, pin_memory=True)
ready = torch.cuda.Event()
for step in range(3):
    if step:
        ready.synchronize()
    staging.copy_(torch.full((4, 8), float(step)))
    batch = staging.to(device, non_blocking=True)
    ready.record()
    out = (batch * 2).cpu()
    assert out[0, 0] == 2.0 * step

pageable = torch.randn(8)
there = pageable.to(device)
pageable.zero_()
back = torch.empty(8)
back.copy_(there)
back += 1
for name, value in torch.nn.Linear(2, 2).to(device).state_dict().items():
    kept = value.cpu().clone()
there_too = torch.randn(4).pin_memory().to(device, non_blocking=True)
fresh = [torch.randn(4).pin_memory().to(device, non_blocking=True).sum() for _ in range(3)]
