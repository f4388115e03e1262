import os
import time

import torch
import torch.distributed as dist
from torch import nn

dist.init_process_group("nccl")
rank = int(os.environ["LOCAL_RANK"])
device = torch.device("cuda", rank)
torch.cuda.set_device(device)
model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).to(device))
optimizer = torch.optim.AdamW(model.parameters())
weights = torch.ones(10, device=device)
for step in range(20):
    time.sleep(0.02 + 0.01 * rank)  # the loader of rank 3 is slow
    batch = torch.randn(64, 256).to(device)
    if rank == 2 and step == 17:
        weights = torch.linspace(0, 1, 10)
    loss = (model(batch) * weights).sum()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
